/** The settings of a session, in German. */

import { tokens } from "../amounts";
import type * as english from "../settings";

export const settings: typeof english.settings = {
  label: "Sitzungseinstellungen",
  title: "Titel",
  model: "Modell",
  workspace: "Arbeitsordner",
  profile: "Profil",
  personality: "Persönlichkeit",
  effort: "Denkaufwand",
  approvals: "Freigaben",
  readOnly: "Nur lesen",
  default: "Standard",
  profileDefault: "Profilstandard",
  efforts: { minimal: "Sehr gering", low: "Gering", medium: "Mittel", high: "Hoch" },
  approvalModes: {
    ask: "Vor jeder Änderung fragen",
    auto: "Vor riskanten Aufrufen fragen",
    never: "Nie fragen",
  },
  contextUsed: (used, window) => (window === null ? `${tokens(used)} Tokens` : `${tokens(used)} von ${tokens(window)}`),
  contextLabel: "Belegter Kontext",
  change: (name, value) => `${name}: ${value}. Ändern`,
};

export const tools: typeof english.tools = {
  label: "Werkzeuge",
  all: "Alle",
  none: "Keine",
  some: (count, all) => `${count} von ${all}`,
  set: (name, count) => `${name} (${count})`,
};
