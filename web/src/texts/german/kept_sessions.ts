/** Keeping sessions in order, in German: choosing several, tags, copies, files, links. */

import type * as english from "../kept_sessions";
import { plural } from "./plural";

const sessions = (count: number): string => plural(count, "Sitzung", "Sitzungen");

export const selecting: typeof english.selecting = {
  start: "Auswählen",
  stop: "Fertig",
  all: "Alle auswählen",
  bar: "Ausgewählte Sitzungen",
  count: (count) => `${count} ausgewählt`,
  archive: "Archivieren",
  unarchive: "Aus dem Archiv holen",
  tag: "Stichwörter",
  export: "Exportieren",
  delete: "Löschen",
  keys: "Umschalt+Klick wählt einen Bereich. Strg+A wählt alle. Esc beendet.",
  deleteTitle: (count) => `${sessions(count)} löschen?`,
  deleteBody: (count) =>
    `Keryx löscht ${sessions(count)} mit dem gesamten Inhalt. Das lässt sich nicht rückgängig machen.`,
};

export const tags: typeof english.tags = {
  title: "Stichwörter",
  lead: "Ein Stichwort erscheint in der Liste als Ordner.",
  folder: (name, count) => `${name}, ${sessions(count)}`,
  list: "Stichwörter",
  none: "Noch keine Stichwörter.",
  add: "Hinzufügen",
  label: "Neues Stichwort",
  tooMany: (most) => `Eine Sitzung hat höchstens ${most} Stichwörter. Bitte einige abwählen.`,
};

export const exporting: typeof english.exporting = {
  title: "Exportieren",
  format: "Dateiformat",
  formats: {
    markdown: "Markdown: zum Lesen und Bearbeiten",
    html: "HTML: zum Lesen in jedem Browser",
    json: "JSON: vollständig, zum Importieren",
    jsonl: "JSON-Zeilen: eine Sitzung in jeder Zeile",
  },
  archive: (count) => `${sessions(count)} in einer Datei.`,
  tooMany: (most) => `Bitte höchstens ${most} Sitzungen auf einmal auswählen.`,
  download: "Herunterladen",
};

export const importing: typeof english.importing = {
  start: "Importieren",
  title: "Sitzungen importieren",
  lead: "Eine Datei auswählen: ein Export von Keryx, eine Liste von Nachrichten wie bei OpenAI oder Sitzungen von hermes-agent.",
  file: "Datei",
  confirm: "Importieren",
  done: (count) => `${sessions(count)} importiert.`,
  leftOut: (count) =>
    `${plural(count, "Systemnachricht", "Systemnachrichten")} ausgelassen: Keryx hat eigene Anweisungen.`,
  open: "Öffnen",
};

export const sharing: typeof english.sharing = {
  title: "Teilen",
  lead: "Wer den Link hat, kann diese Sitzung ohne Anmeldung lesen, aber nichts schreiben.",
  expires: "Läuft ab",
  days: { "1": "Nach 1 Tag", "7": "Nach 7 Tagen", "30": "Nach 30 Tagen", never: "Nie" },
  shows: "Inhalt",
  upToNow: "Wie sie jetzt ist",
  follows: "Auch was später kommt",
  attachments: "Bilder zeigen",
  create: "Link erstellen",
  once: "Bitte den Link jetzt kopieren. Er wird nicht noch einmal gezeigt.",
  link: "Adresse",
  copy: "Kopieren",
  copied: "Kopiert",
  list: "Geteilte Links",
  none: "Keine Links.",
  created: (time) => `Erstellt: ${time}`,
  until: (time) => `gültig bis ${time}`,
  always: "läuft nie ab",
  following: "zeigt auch, was später kommt",
  revoke: "Widerrufen",
  revokeOf: (about) => `Widerrufen: ${about}`,
};
