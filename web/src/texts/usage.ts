/** Tokens and costs. */

import { money, tokens } from "./amounts";

export const usage = {
  title: "Usage",
  chip: (context: string, cost: string): string => ["Usage", context, cost].filter(Boolean).join(", "),
  /** Beside the button: the cost if it is known, else the tokens. */
  usedToday: (used: number, cost: number | null): string =>
    `${cost === null || cost === 0 ? `${tokens(used)} tokens` : money(cost)} today`,
  today: "Today",
  todayLead: "All sessions since midnight.",
  session: "This session",
  allTime: "All time",
  allTimeLead: "All sessions on this server.",
  context: "Context",
  input: "Input",
  cached: "Cached",
  output: "Output",
  reasoning: "Reasoning",
  cost: "Cost",
  costUnknown: "cost unknown",
  model: "Model",
  sessions: "Sessions",
  total: "Total",
  charts: "Charts and export",
  empty: "No usage yet.",
  money: (value: number | null): string => (value === null ? "Unknown" : money(value)),
};
