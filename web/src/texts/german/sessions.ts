/** The list of sessions, and the search through all of them, in German. */

import type * as english from "../sessions";
import { plural } from "./plural";

export const list: typeof english.list = {
  label: "Sitzungen",
  open: "Sitzungen",
  close: "Liste schließen",
  newSession: "Neue Sitzung",
  search: "Suchen",
  searchKeys: "Strg K",
  pinned: "Angeheftet",
  active: "Aktiv",
  today: "Heute",
  yesterday: "Gestern",
  untitled: "Neue Sitzung",
  more: "Mehr anzeigen",
  empty: "Noch keine Sitzungen.",
  emptyArchive: "Keine archivierten Sitzungen.",
  archived: "Archiv",
  backFromArchive: "Zurück zu den Sitzungen",
  running: "Läuft",
  waiting: "Wartet auf Sie",
  damaged: "Beschädigt",
  failed: "Fehlgeschlagen",
  now: "Jetzt",
  actions: (title) => `Aktionen für ${title}`,
  rename: "Umbenennen",
  pin: "Anheften",
  unpin: "Lösen",
  duplicate: "Duplizieren",
  copyOf: (title) => `${title} (Kopie)`,
  tags: "Stichwörter",
  export: "Exportieren",
  share: "Teilen",
  archive: "Archivieren",
  unarchive: "Aus dem Archiv holen",
  delete: "Löschen",
  title: "Titel",
  settings: "Einstellungen",
  theme: "Design",
  themes: { system: "System", light: "Hell", dark: "Dunkel" },
  language: "Sprache",
  signOut: "Abmelden",
};

export const deletion: typeof english.deletion = {
  title: "Diese Sitzung löschen?",
  body: (title) => `Keryx löscht „${title}“ mit dem gesamten Inhalt. Das lässt sich nicht rückgängig machen.`,
  confirm: "Löschen",
};

export const search: typeof english.search = {
  title: "Suche",
  label: "Alle Sitzungen durchsuchen",
  placeholder: "Nachrichten, Antworten und Aufrufe durchsuchen",
  none: "Keine Ergebnisse",
  count: (count) => plural(count, "Ergebnis", "Ergebnisse"),
  kinds: { message: "Sie", reply: "Antwort", call: "Aufruf" },
};
