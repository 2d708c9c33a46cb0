/** The screen of usage, in German. */

import { money, seconds, tokens } from "../amounts";
import type { UsageScreenTexts } from "../usage_screen";
import { plural } from "./plural";

export const usageScreen: UsageScreenTexts = {
  title: "Verbrauch",
  back: "Zurück",
  period: "Zeitraum",
  periods: { today: "Heute", "7": "7 Tage", "30": "30 Tage", "90": "90 Tage", all: "Alles" },
  empty: "Kein Verbrauch in diesem Zeitraum.",
  emptyHint: "Wähle einen längeren Zeitraum.",
  summary: "Übersicht",
  cost: "Kosten",
  unknown: "Unbekannt",
  unknownHint: (known) =>
    known > 0
      ? `Der Preis einiger Anfragen ist unbekannt. Die anderen kosten ${money(known)}.`
      : "Der Preis dieser Anfragen ist unbekannt.",
  tokens: "Tokens gesamt",
  tokensHint: (input, output) => `${tokens(input)} Eingabe, ${tokens(output)} Ausgabe`,
  firstToken: "Erstes Token",
  firstTokenHint: "Mittlere Zeit, bis eine Antwort beginnt",
  cacheHits: "Cache-Treffer",
  cacheHint: "Anteil der Eingabe, den der Anbieter aus seinem Cache gelesen hat",
  toolCalls: "Werkzeugaufrufe",
  toolHint: (time) => `${seconds(time)} Werkzeugzeit`,
  failed: "Fehlgeschlagen",
  failedHint: (share) => `${share} aller Aufrufe sind nicht gelungen`,
  requests: "Anfragen",
  input: "Eingabe",
  uncached: "Eingabe ohne Cache",
  cached: "Aus dem Cache",
  output: "Ausgabe",
  reasoning: "Denken",
  calls: "Aufrufe",
  time: "Zeit",
  average: "Mittel",
  sections: {
    day: { title: "Nach Tag", name: "Tag" },
    model: { title: "Nach Modell", name: "Modell" },
    tool: { title: "Nach Werkzeug", name: "Werkzeug" },
    session: { title: "Nach Sitzung", name: "Sitzung" },
    purpose: { title: "Nach Zweck", name: "Zweck" },
  },
  purposes: {
    turn: "Antworten",
    title: "Titel",
    compaction: "Verdichtung",
    vision: "Bildbeschreibungen",
    extraction: "Webseiten",
    search: "Websuche",
    mixture: "Mehrere Modelle",
    image: "Bilder",
    speech: "Sprache",
    transcription: "Abschriften",
    sampling: "MCP-Server",
  },
  untitled: "Sitzung ohne Titel",
  deleted: "Gelöschte Sitzungen",
  others: (count) =>
    `${plural(count, "Sitzung wird", "Sitzungen werden")} hier nicht gezeigt. Der Export enthält alle.`,
  show: "Anzeigen",
  metrics: { tokens: "Token-Zahl", cost: "Kosten" },
  chart: (metric, days) => `${metric} in ${plural(days, "Balken", "Balken")}. Die Tabelle darunter hat die Zahlen.`,
  costMissing: "Tage mit unbekannten Kosten zeigen nur, was bekannt ist.",
  bar: (name, amount) => `${name} – ${amount}`,
  table: "Als Tabelle zeigen",
  noTools: "Keine Werkzeugaufrufe in diesem Zeitraum.",
  exports: "Exportieren",
  exportAs: (format, section) => `${format} (${section})`,
  percent: (share) => (share === null ? "–" : `${Math.round(share * 100)} %`),
};
