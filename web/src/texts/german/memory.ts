/** What is remembered beyond sessions, in German. */

import type * as english from "../memory";
import { plural } from "./plural";

export const memory: typeof english.memory = {
  title: "Gedächtnis",
  lead: "Was sich Agenten über ihre Sitzungen hinaus merken. Sie erhalten, was zu Ihren Nachrichten passt.",
  search: "Gedächtnis durchsuchen",
  none: "Noch ist nichts gemerkt.",
  noHits: "Nichts gefunden.",
  add: "Hinzufügen",
  addLabel: "Etwas merken",
  addPlaceholder: "Ein Sachverhalt in einem Satz, in eigenen Worten",
  list: "Was gemerkt ist",
  more: "Mehr anzeigen",
  edit: "Bearbeiten",
  editItem: (text) => `„${text}“ bearbeiten`,
  text: "Wortlaut",
  forget: "Vergessen",
  forgetItem: (text) => `„${text}“ vergessen`,
  forgetTitle: "Das endgültig vergessen?",
  forgetBody: "Keryx löscht es hier und bei jedem Anbieter, zusammen mit allem, was es ersetzt hat.",
  remaining: (names) =>
    `Hier gelöscht. Bei ${names} ist es vielleicht noch; Keryx löscht es dort, sobald eine Antwort kommt.`,
  confirm: "Bestätigen",
  confirmItem: (text) => `„${text}“ bestätigen`,
  trust: {
    person: "Vertraut wie Ihre eigenen Worte",
    tool: "Aus gelesenen Dateien",
    page: "Nicht vertraut: aus einer Webseite oder einem Befehl",
  },
  conflict:
    "Widerspricht einem anderen Eintrag: Beide haben denselben ersetzt. Bearbeiten oder vergessen Sie einen davon.",
  byYou: "Von Ihnen geschrieben",
  from: "Aus",
  deletedSession: "Aus einer gelöschten Sitzung",
  work: (workspace) => `Nur für ${workspace}`,
  whose: (person) => `Von ${person}`,
  providers: "Anbieter",
  state: {
    upToDate: "Aktuell",
    leftOut: "Ausgelassen: nicht verwendbar",
    waiting: (count, since) =>
      count === 1 ? `1 Eintrag wartet seit ${since}` : `${count} Einträge warten seit ${since}`,
    failing: (count, error) => `${plural(count, "Fehler", "Fehler")} in Folge: ${error}`,
    refused: (count) => `${count} abgewiesen`,
    unknown: (count) => `${count} ungewiss`,
  },
  stuck: (name, since) => `${name} hängt seit ${since}.`,
  retryAll: "Jetzt noch einmal versuchen",
  failures: "Nicht gespeichert",
  failure: { refused: "Abgewiesen", unknown: "Vielleicht gespeichert" },
  retryItem: (text) => `„${text}“ noch einmal versuchen`,
  given: {
    label: "Aus dem Gedächtnis, für diese Runde",
    none: "Das Gedächtnis hatte nichts für diese Runde.",
    late: (names) => `Keine rechtzeitige Antwort: ${names}.`,
  },
};
