/** The screen of usage. It is loaded with that screen. */

import { otherLanguage } from ".";
import { money, seconds, tokens } from "./amounts";
import { plural } from "./sentences";

export const PERIODS = ["today", "7", "30", "90", "all"] as const;
export type Period = (typeof PERIODS)[number];

export const english = {
  title: "Usage",
  back: "Back",
  period: "Period",
  periods: { today: "Today", "7": "7 days", "30": "30 days", "90": "90 days", all: "All" } as Record<Period, string>,
  empty: "No usage in this period.",
  emptyHint: "Choose a longer period.",
  summary: "Summary",
  cost: "Cost",
  unknown: "Unknown",
  unknownHint: (known: number): string =>
    known > 0
      ? `The price of some requests is unknown. The others cost ${money(known)}.`
      : "The price of these requests is unknown.",
  tokens: "Tokens",
  tokensHint: (input: number, output: number): string => `${tokens(input)} input, ${tokens(output)} output`,
  firstToken: "First token",
  firstTokenHint: "Mean time until a reply begins",
  cacheHits: "Cache hits",
  cacheHint: "Share of the input that the provider read from its cache",
  toolCalls: "Tool calls",
  toolHint: (time: number): string => `${seconds(time)} of tool time`,
  failed: "Failed calls",
  failedHint: (share: string): string => `${share} of all calls did not complete`,
  failedTurns: "Failed turns",
  failedTurnsHint: (turns: number): string => `of ${plural(turns, "turn")}`,
  requests: "Requests",
  input: "Input",
  uncached: "Input, not cached",
  cached: "Cached",
  output: "Output",
  reasoning: "Reasoning",
  calls: "Calls",
  time: "Time",
  average: "Average",
  sections: {
    day: { title: "By day", name: "Day" },
    model: { title: "By model", name: "Model" },
    tool: { title: "By tool", name: "Tool" },
    session: { title: "By session", name: "Session" },
    purpose: { title: "By purpose", name: "Purpose" },
  },
  purposes: {
    turn: "Replies",
    title: "Titles",
    compaction: "Compaction",
    vision: "Image descriptions",
    extraction: "Web pages",
    search: "Web search",
    mixture: "Several models",
    image: "Images",
    speech: "Speech",
    transcription: "Transcription",
    sampling: "MCP servers",
  } as Readonly<Record<string, string>>,
  untitled: "Untitled session",
  deleted: "Deleted sessions",
  others: (count: number): string => `${plural(count, "session")} not shown. The export has all of them.`,
  show: "Show",
  metrics: { tokens: "Tokens", cost: "Cost" },
  chart: (metric: string, days: number): string =>
    `${metric} in ${plural(days, "bar")}. The table below has the numbers.`,
  costMissing: "Days with an unknown cost show only what is known.",
  bar: (name: string, amount: string): string => `${name}: ${amount}`,
  table: "Show as a table",
  noTools: "No tool calls in this period.",
  exports: "Export",
  exportAs: (format: string, section: string): string => `${format}, ${section}`,
  percent: (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)}%`),
};

export type UsageScreenTexts = typeof english;

/** In the language of the page, which is chosen before this is loaded. */
export const usageScreen: UsageScreenTexts = otherLanguage?.usageScreen ?? english;
