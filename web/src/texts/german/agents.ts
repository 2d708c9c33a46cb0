/** Child agents and plans, in German. */

import type * as english from "../agents";

export const agents: typeof english.agents = {
  link: (line) => `Unteragent öffnen: ${line}`,
  open: "Diesen Unteragenten öffnen",
  missing: "Dieser Unteragent hat keine Sitzung: Er endete, bevor er begann, oder seine Sitzung wurde gelöscht.",
  childOf: "Unteragent von",
  parent: "der Sitzung, die ihn gestartet hat",
};

export const plan: typeof english.plan = {
  label: "Aufgabenplan",
  steps: "Schritte des Plans",
  count: (done, all) => `${done} von ${all} erledigt`,
  status: { open: "Offen", doing: "In Arbeit", done: "Erledigt" },
};
