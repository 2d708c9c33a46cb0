/** Where a person types, in German: the message box, its commands and keys, and the queue above it. */

import { bytes, wholeNumber } from "../amounts";
import type * as english from "../composer";
import { plural } from "./plural";

export const composer: typeof english.composer = {
  dictate: "Diktieren",
  stopDictation: "Diktat beenden",
  notHeard: "Keryx kann Sie nicht hören.",
  notHeardHint: "Erlauben Sie dieser Seite im Browser das Mikrofon, oder tippen Sie.",
  label: "Nachricht",
  placeholder: "Nachricht an Keryx…",
  placeholderRunning: "Einreihen oder eingreifen…",
  attach: "Anhängen",
  send: "Senden",
  queue: "Einreihen",
  steer: "Eingreifen",
  steerKeys: "Strg ↵",
  stop: "Stopp",
  failed: "Die Nachricht wurde nicht gesendet. Der Text ist noch hier.",
  files: "Angehängte Dateien",
  remove: (name) => `${name} entfernen`,
  uploading: "Wird hochgeladen…",
  sendsAfterUpload: "Keryx sendet die Nachricht, sobald alles hochgeladen ist.",
  cancelSend: "Nicht senden",
  notUploaded: (name) => `${name} wurde nicht hochgeladen`,
  notUploadedHint: "Entfernen Sie die Datei, oder hängen Sie sie danach noch einmal an",
  pastedName: "eingefügt",
  pastedText: "eingefügter Text.txt",
  tooLong: (length, most) =>
    `Die Nachricht hat ${wholeNumber(length)} Zeichen, höchstens ${wholeNumber(most)} sind möglich.`,
  tooLongHint: "Hängen Sie den Text stattdessen als Datei an",
  tooLongHere: "Kürzen Sie ihn, oder hängen Sie ihn als Datei an eine Nachricht an",
  attachText: "Als Datei anhängen",
  returned: {
    queued: "Die Nachricht wurde gesendet oder entfernt, bevor Sie Ihre Änderung gespeichert haben. Ihr Text ist hier.",
    answer: "Die Frage ist geschlossen. Ihre Antwort darauf ist hier.",
  },
  size: bytes,
};

export const commands: typeof english.commands = {
  label: "Vorschläge",
  about: {
    model: "Modell dieser Sitzung ändern",
    workspace: "Ordner ändern, in dem diese Sitzung arbeitet",
    personality: "Persönlichkeit des Agenten ändern",
    effort: "Ändern, wie viel das Modell nachdenkt",
    exec: "Python mit allen Werkzeugen ausführen, ohne Modell",
    fork: "Neue Sitzung mit einer Kopie von dieser beginnen",
    undo: "Letzte Runde und ihre Dateiänderungen rückgängig machen",
    stop: "Laufende Runde stoppen",
    compact: "Frühere Nachrichten durch eine Zusammenfassung ersetzen",
    help: "Alle Befehle und Tasten anzeigen",
  },
  takes: {
    model: "MODELL",
    workspace: "ORDNER",
    personality: "PERSÖNLICHKEIT",
    effort: "STUFE",
    exec: "PYTHON",
    compact: "[SCHWERPUNKT]",
  },
  // A word of the command, as the names of efforts are.
  default: "default",
  defaultAbout: "Profilstandard",
  current: "Aktuell",
  folder: "Ordner",
  thisFolder: "Dieser Ordner",
  noFile: "Hier gibt es keine Datei mit diesem Namen.",
  noFolder: "Diesen Ordner gibt es nicht.",
  noFilesYet: "Keryx schlägt Dateien vor, sobald eine Sitzung in diesem Ordner arbeitet.",
  run: "Ausführen",
  runs: {
    terminal: "Läuft im Terminal, ohne Modell.",
    code: "Läuft als Python mit allen Werkzeugen, ohne Modell.",
  },
  failed: "Der Befehl wurde nicht ausgeführt. Der Text ist noch hier.",
  unknown: (name) => `Den Befehl /${name} gibt es nicht.`,
  unknownHint: "Mit / erscheinen alle Befehle. Um den Text als Nachricht zu senden, setzen Sie ein Leerzeichen davor.",
  needsValue: (name, takes) => `/${name} braucht einen Wert: /${name} ${takes}`,
  needsSession: "Dieser Befehl braucht eine Sitzung. Senden Sie eine Nachricht, um eine zu beginnen.",
  nothingRuns: "Es läuft nichts.",
  noTurn: "Es gibt keine Runde, die sich rückgängig machen lässt.",
};

export const help: typeof english.help = {
  title: "Befehle und Tasten",
  keys: "Tasten",
  prefixes: [
    ["!BEFEHL", "Befehl im Terminal ausführen, ohne Modell"],
    ["@PFAD", "Pfad einer Datei aus dem Arbeitsordner einfügen"],
  ],
  keyList: [
    ["↵", "Nachricht senden, oder einreihen, solange eine Runde läuft"],
    ["Umschalt ↵", "Neue Zeile"],
    ["Strg ↵", "Eingreifen: Laufendes abbrechen und die Nachricht sofort senden"],
    ["Alt ↵", "Nachricht nach diesem Schritt senden"],
    ["Esc", "Runde stoppen, oder schließen, was offen ist"],
    ["N", "Neue Sitzung"],
    ["I", "Inspektor ein- oder ausblenden"],
    ["Strg K", "Suche und alle Befehle"],
    ["?", "Diese Liste anzeigen"],
  ],
};

export const steer: typeof english.steer = {
  calls: (count) =>
    `Eingreifen bricht ${plural(count, "laufenden Aufruf", "laufende Aufrufe")} ab und sendet die Nachricht sofort.`,
  reply: "Eingreifen bricht die Antwort ab und sendet die Nachricht sofort.",
  now: "Eingreifen sendet die Nachricht sofort.",
  afterStep: "Nach diesem Schritt",
  afterStepAbout: "Bricht nichts ab. Der Agent liest die Nachricht, wenn dieser Schritt fertig ist.",
};

export const queue: typeof english.queue = {
  stopping: {
    title: (count) =>
      count === 1
        ? "Die Runde wird gestoppt. Die wartende Nachricht danach senden?"
        : `Die Runde wird gestoppt. Die ${count} wartenden Nachrichten danach senden?`,
    goOn: () => "Stoppen, dann senden",
    stopAll: "Stoppen und Warteschlange leeren",
  },
  label: "Wartende Nachrichten",
  next: "Als Nächstes",
  afterStep: "Nach diesem Schritt",
  edit: "Bearbeiten",
  up: "Nach oben",
  down: "Nach unten",
  remove: "Entfernen",
  text: "Wartende Nachricht",
  notSaved: "Die Änderung wurde nicht gespeichert.",
  action: (action, text) => `${action}: ${text.slice(0, 40)}`,
  attachments: (count) => plural(count, "Datei", "Dateien"),
};
