/** What a folder brings along, and whether a person trusts it, in German. */

import type * as english from "../trust";

export const trust: typeof english.trust = {
  label: "Diesem Ordner vertrauen",
  line: (summary) => `Dieser Ordner bringt mit: ${summary}. Nichts davon läuft, bis Sie ihm vertrauen.`,
  review: "Prüfen…",
  title: "Diesem Ordner vertrauen?",
  lead: "Was hier steht, könnte mit Ihren Sitzungen in diesem Ordner laufen. Vertrauen Sie ihm nur, wenn Sie wissen, woher er stammt. Ändert sich etwas, fragt Keryx noch einmal.",
  servers: "MCP-Server",
  hooks: "Hooks",
  skills: "Skills",
  hook: (event, tools) => (tools === "" ? event : `${event} ${tools}`),
  confirm: "Diesem Ordner vertrauen",
  done: "Der Ordner ist vertrauenswürdig. Was er mitbringt, gilt ab der nächsten Runde.",
};
