/** The inspector, in German: one call, the files, the changes, the context. */

import { bytes, tokens } from "../amounts";
import type * as english from "../inspector";
import { plural } from "./plural";

export const inspector: typeof english.inspector = {
  label: "Inspektor",
  hide: "Inspektor ausblenden",
  tabs: { call: "Aufruf", files: "Dateien", changes: "Änderungen", context: "Kontext" },
  call: {
    newest: "Das ist der neueste Aufruf. Um einen anderen zu sehen, klicken Sie im Verlauf auf seinen Balken.",
    none: "Hier gibt es noch keine Aufrufe.",
    notLoaded: "Dieser Aufruf ist nicht geladen. Blättern Sie im Verlauf bis zu ihm.",
    tool: "Werkzeug",
    state: "Zustand",
    where: "Ort",
    started: "Begonnen",
    waitingFor: "Wartet auf",
    waitsFor: { person: "Sie", order: "andere Aufrufe oder einen freien Platz", nothing: "nichts" },
    startedAt: (time, waited) => (waited ? `${time}, nach ${waited} Wartezeit` : time),
    running: (since) => `Läuft, ${since}`,
    done: (took) => `Fertig in ${took}`,
    cancel: "Diesen Aufruf abbrechen",
  },
  thisTurn: {
    label: "Diese Runde",
    model: "Modell",
    tools: "Werkzeuge",
    saved: "Gespart",
    serial: (serial) => `Nacheinander würden diese Aufrufe ${serial} dauern.`,
  },
};

export const files: typeof english.files = {
  root: "Arbeitsordner",
  path: "Ordner",
  empty: "Dieser Ordner ist leer.",
  cut: (shown) => `Nur die ersten ${shown} sind zu sehen.`,
  truncated: "Dieser Ordner hat mehr Einträge, als hier zu sehen sind.",
  binary: (kind, size) => `${kind}, ${bytes(size)}. Diese Datei ist kein Text und wird nicht angezeigt.`,
  size: bytes,
  download: "Herunterladen",
  refresh: "Aktualisieren",
};

export const changes: typeof english.changes = {
  none: "Diese Sitzung hat keine Dateien geändert.",
  allReverted: "Es sind keine Änderungen übrig. Alle Dateien sind wie zuvor.",
  files: (count) => `${plural(count, "Datei", "Dateien")} geändert`,
  select: (path) => `${path} auswählen`,
  same: "Wie zuvor",
  times: (count) => plural(count, "Änderung", "Änderungen"),
  revert: (count) => `${plural(count, "Datei", "Dateien")} zurücksetzen`,
  revertAll: "Alle zurücksetzen",
  title: (count) => `${plural(count, "Datei", "Dateien")} zurücksetzen?`,
  body: "Keryx stellt jede Datei so wieder her, wie sie war, bevor diese Sitzung sie geändert hat. Gelingt das bei einer nicht, bleiben alle unverändert.",
  confirm: "Zurücksetzen",
};

export const context: typeof english.context = {
  meter: "Belegter Kontext",
  used: (used, window) => (window === null ? `${tokens(used)} Tokens` : `${tokens(used)} von ${tokens(window)} Tokens`),
  unknown: "Nach der ersten Antwort bekannt.",
  parts: "Teile des Prompts",
  size: (characters) => `${tokens(characters)} Zeichen`,
  tools: (count) => plural(count, "Werkzeug", "Werkzeuge"),
  none: "Der Prompt besteht nur aus den Nachrichten.",
};
