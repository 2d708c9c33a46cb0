/** The transcript, in German: messages, replies, calls on their time axis, and the notes between them. */

import { seconds, tokens } from "../amounts";
import { sentence } from "../sentences";
import type * as english from "../transcript";
import { error } from "./errors";
import { plural } from "./plural";

const OUTCOMES: Record<string, string> = {
  completed: "Fertig",
  failed: "Fehlgeschlagen",
  denied: "Abgelehnt",
  cancelled: "Abgebrochen",
  unknown: "Ungewiss",
  exited: "Exit-Code nicht 0",
};

const REASONS: Record<string, string> = {
  timeout: "es hat zu lange gedauert",
  shutdown: "der Host wurde gestoppt",
  parent: "der Aufruf, der ihn gestartet hat, ist beendet",
  crash: "der Host ist abgestürzt",
  expired: "die Freigabe ist abgelaufen",
  undelivered: "niemand war da, um die Freigabe zu geben",
  no_progress: "auch nach Neustarts ging es nicht voran",
};

/** Reasons that need no colon: "Abgebrochen von Ihnen". */
const AUTHORS: Record<string, string> = {
  interrupt: "von Ihnen",
  steer: "durch Ihr Eingreifen",
};

const SETTINGS: Record<string, string> = {
  model: "Modell",
  workspace: "Arbeitsordner",
  personality: "Persönlichkeit",
  effort: "Denkaufwand",
  approvals: "Freigaben",
  read_only: "Nur lesen",
  place: "Ort",
  profile: "Profil",
};

/** What follows an outcome: " von Ihnen", ": es hat zu lange gedauert", or nothing. */
function because(reason: string | null): string {
  if (!reason) return "";
  // Some reasons explain themselves after a colon, in the words of the log.
  const [kind = ""] = reason.split(": ", 1);
  return reason in AUTHORS ? ` ${AUTHORS[reason]}` : `: ${REASONS[kind] ?? reason}`;
}

function settingValue(value: unknown): string {
  if (value === null || value === "") return "Profilstandard";
  if (value === true) return "an";
  if (value === false) return "aus";
  return String(value);
}

const calls = (count: number): string => plural(count, "Aufruf", "Aufrufe");
const nestedCalls = (count: number): string => plural(count, "Unteraufruf", "Unteraufrufe");

export const transcript: typeof english.transcript = {
  label: "Verlauf",
  loadingEarlier: "Frühere Nachrichten werden geladen…",
  notPrinted:
    "Frühere Nachrichten werden nicht gedruckt. Strg+P in der Sitzung druckt mehr davon; ein Export als HTML hat alle.",
  earlierPart: "Frühere Nachrichten",
  latest: "Zum Neuesten",
  searchResult: "Suchergebnis",
  you: "Sie",
  reply: "Antwort",
  steered: "Eingegriffen",
  working: "Arbeitet…",
  stopping: "Wird gestoppt…",
  waiting: "Wartet auf Sie",
  thinking: "Denkt nach…",
  reasoning: "Gedankengang",
  replyCut: "Die Antwort wurde abgebrochen.",
  calls: (count, running) =>
    running > 0 ? `${calls(count)}, ${running === 1 ? "1 läuft" : `${running} laufen`}` : calls(count),
  alike: (count) => `${calls(count)}, ${count === 1 ? "fertig" : "alle fertig"}`,
  ended: {
    cancelled: (reason) => `Gestoppt${because(reason)}`,
    failed: () => "Die Runde ist fehlgeschlagen",
    parked: (reason) => `Geparkt${because(reason)}`,
    notStarted: "Abgebrochen, bevor es losging",
    leftOver: (count) => (count === 1 ? "1 Aufruf läuft vielleicht noch." : `${count} Aufrufe laufen vielleicht noch.`),
  },
  announced: { done: "Fertig.", waiting: "Keryx wartet auf Sie." },
};

export const reply: typeof english.reply = {
  actions: "Aktionen für diese Antwort",
  copyMarkdown: "Kopieren",
  copyText: "Als Text kopieren",
  regenerate: "Neu erzeugen",
  tryAgain: "Noch einmal versuchen",
  with: "mit…",
  otherWays: "Neu erzeugen mit…",
  models: "Mit Modell",
  elsewhere: "An anderer Stelle",
  inFork: "In einer Abzweigung",
  readAloud: "Vorlesen",
  stopReading: "Vorlesen beenden",
  variant: (at, count) => `${at} von ${count}`,
  previous: "Vorige Antwort",
  next: "Nächste Antwort",
};

export const replacing: typeof english.replacing = {
  title: "Was geschieht mit den geänderten Dateien?",
  body: (count) =>
    `Die Antwort, die Sie ersetzen, hat ${plural(count, "Datei", "Dateien")} geändert. Änderungen zurücksetzen oder behalten?`,
  keep: "Dateien behalten",
  revert: "Dateien zurücksetzen",
  refused: "Es wurde nichts ersetzt.",
};

export const turn: typeof english.turn = {
  actions: "Aktionen für diese Runde",
  edit: "Bearbeiten",
  editText: "Bearbeitete Nachricht",
  editNote: "Die alte Nachricht und alles danach bleiben unter der neuen Antwort erreichbar.",
  replay: "Runde abspielen",
  fork: "Ab hier abzweigen",
  undo: "Runde rückgängig machen",
  undoTitle: "Diese Runde rückgängig machen?",
  undoBody:
    "Keryx entfernt die Runde aus dem Verlauf und aus dem Kontext des Modells und setzt die Dateien zurück, die sie geändert hat. Ihre Nachricht steht danach wieder im Nachrichtenfeld.",
  undoConfirm: "Rückgängig machen",
  refused: "Die Runde wurde nicht rückgängig gemacht.",
  undoKeepFiles: "Rückgängig machen, Dateien behalten",
};

export const notes: typeof english.notes = {
  retrying: (cause, left) => `${error(cause)}. Neuer Versuch in ${Math.ceil(left)} s.`,
  retried: (cause, delay) => `${error(cause)}. Neuer Versuch nach ${seconds(delay).replace(",0 ", " ")}.`,
  switched: (from, to, cause) => `Von ${from} zu ${to} gewechselt: ${error(cause)}.`,
  resumed: (attempt) =>
    attempt > 1 ? `Nach einem Neustart fortgesetzt (Versuch ${attempt}).` : "Nach einem Neustart fortgesetzt.",
  changed: (changes) =>
    sentence(
      Object.entries(changes)
        .filter(([name]) => name in SETTINGS)
        .map(([name, value]) => `${SETTINGS[name]}: jetzt ${settingValue(value)}`)
        .join(", "),
    ),
};

export const compaction: typeof english.compaction = {
  running: (before) => `Kontext wird komprimiert (${tokens(before)} Tokens)…`,
  done: (before, after) => `Komprimiert: ${tokens(before)} → ${tokens(after)} Tokens`,
  summary: "Zusammenfassung",
  summaryOf: (time) => (time ? `Zusammenfassung von allem vor ${time}` : "Zusammenfassung früherer Nachrichten"),
  about: "Das Modell liest diese Zusammenfassung anstelle der früheren Nachrichten. Im Verlauf bleiben alle erhalten.",
  size: (count) => `${tokens(count)} Tokens`,
  compactNow: "Jetzt komprimieren",
  compacting: "Wird komprimiert…",
  auto: (at) => `Komprimiert automatisch ab ${tokens(at)}`,
};

export const call: typeof english.call = {
  cancel: (tool) => `${tool} abbrechen`,
  arguments: "Argumente",
  output: "Ausgabe bis jetzt",
  result: "Ergebnis",
  noResult: "Keine Ausgabe.",
  resultField: (name, value) =>
    `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  preparing: "Wird vorbereitet",
  queued: "In der Warteschlange",
  waitingForYou: "Wartet auf Sie",
  waiting: "Wartet",
  forYou: " auf Sie",
  running: "Läuft",
  byYou: "Von Ihnen ausgeführt",
  outcome: (outcome) => OUTCOMES[outcome] ?? outcome,
  why: (outcome, reason, endedLater) => {
    const cancelled = outcome === "unknown" && reason !== null && reason in AUTHORS ? ": abgebrochen" : "";
    return `${cancelled}${reason === outcome ? "" : because(reason)}${endedLater ? ", später beendet" : ""}`;
  },
  exited: (code) => `Exit-Code ${code}`,
  notStarted: "Nicht begonnen",
  progress: (done, total) => (total === null ? `${done}` : `${done} von ${total}`),
  nested: (began, done) => (began === done ? nestedCalls(began) : `${nestedCalls(began)}, ${done} fertig`),
  moreNested: (count) => `und ${count} weitere`,
};

/** "3 laufen", "läuft", "3 fehlgeschlagen". */
const inForm = (count: number, form: string): string =>
  count > 1 && form === call.running ? "laufen" : form.toLowerCase();

export const timeline: typeof english.timeline = {
  step: (number) => `Schritt ${number}`,
  details: (tool) => `Einzelheiten zu ${tool}`,
  nested: "Unteraufrufe",
  nestedTool: "Unteraufrufe",
  cancel: (tool, preview) => `Unteraufruf ${`${tool} ${preview}`.trim()} abbrechen`,
  count: (count, ended) => (ended > 0 && ended < count ? `${ended} von ${count}` : `${count}`),
  nestedLine: (tool, count, form, preview, ended = 0) =>
    ended > 0 && ended < count
      ? `${tool}: ${count - ended} von ${count} ${inForm(count - ended, form)}`
      : `${tool}${preview ? ` ${preview}` : ""}: ${count > 1 ? `${count} ` : ""}${inForm(count, form)}`,
  callsOf: (tool, count) => `${tool}: ${calls(count)}`,
  turn: (model, tools) => `Diese Runde: Modell ${model}, Werkzeuge ${tools}`,
  saved: (serial, saved) => `; parallele Aufrufe sparten ${saved} (nacheinander ${serial})`,
};

export const diff: typeof english.diff = {
  label: (path) => `Änderungen an ${path}`,
  added: "Neu",
  deleted: "Gelöscht",
  moved: (to) => `Verschoben nach ${to}`,
  more: (count) => `${plural(count, "weitere Zeile", "weitere Zeilen")} ausgeblendet`,
  lines: (added, removed) => `${added} hinzugefügt, ${removed} entfernt`,
};

export const code: typeof english.code = {
  label: (language) => (language ? `Programmcode (${language})` : "Programmcode"),
  copy: "Kopieren",
  copied: "Kopiert",
};

export const maths: typeof english.maths = { label: "Mathematische Formel" };

export const diagram: typeof english.diagram = {
  label: "Diagramm",
  source: "Quelltext",
  show: "Diagramm",
  alt: (source) => `Diagramm: ${source.slice(0, 500)}`,
  failed: (problem) => `Das Diagramm konnte nicht gezeichnet werden. ${problem}`.trim(),
};

export const file: typeof english.file = {
  download: (name) => `${name} herunterladen`,
  image: "Bild",
  file: "Datei",
};
