/** The list of commands that Ctrl+K offers beside what it finds, in German. */

import type * as english from "../shortcuts";

export const shortcuts: typeof english.shortcuts = {
  commands: "Befehle",
  sessions: "Sitzungen",
  results: "In Sitzungen",
  newSession: "Neue Sitzung",
  toggleInspector: "Inspektor ein- oder ausblenden",
  archived: "Archivierte Sitzungen",
  keys: "Befehle und Tasten",
  theme: (name) => `Design: ${name}`,
  run: (name) => `/${name}`,
};
