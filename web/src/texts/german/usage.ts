/** Tokens and costs, in German. */

import { money, tokens } from "../amounts";
import type * as english from "../usage";

export const usage: typeof english.usage = {
  title: "Verbrauch",
  chip: (context, cost) => ["Verbrauch", context, cost].filter(Boolean).join(", "),
  usedToday: (used, cost) => `${cost === null || cost === 0 ? `${tokens(used)} Tokens` : money(cost)} heute`,
  today: "Heute",
  todayLead: "Alle Sitzungen seit Mitternacht.",
  session: "Diese Sitzung",
  allTime: "Gesamt",
  allTimeLead: "Alle Sitzungen auf diesem Server.",
  context: "Kontext",
  input: "Eingabe",
  cached: "Cache",
  output: "Ausgabe",
  reasoning: "Denken",
  cost: "Kosten",
  costUnknown: "Kosten unbekannt",
  model: "Modell",
  sessions: "Sitzungen",
  total: "Summe",
  empty: "Noch kein Verbrauch.",
  money: (value) => (value === null ? "Unbekannt" : money(value)),
};
