import { expect, it } from "vitest";
import type { SessionSummary, UsageRow } from "../src/api/types";
import { newsText } from "../src/notifications/news_text";
import { nameOf } from "../src/setup/providers";
import { usageTotals } from "../src/usage/usage_totals";

const row = (session_id: string, model: string, input_tokens: number, cost: number | null): UsageRow => ({
  session_id,
  model,
  input_tokens,
  output_tokens: 1,
  cached_tokens: 0,
  reasoning_tokens: 0,
  cost,
});

it("adds up what was used by model and in all, and counts a session once", () => {
  const { models, total } = usageTotals([row("a", "x", 10, 0.5), row("b", "x", 5, 0.25), row("a", "y", 100, 1)]);
  expect(models.map((sum) => [sum.model, sum.sessions, sum.input_tokens, sum.cost])).toEqual([
    ["y", 1, 100, 1],
    ["x", 2, 15, 0.75],
  ]);
  expect([total.sessions, total.input_tokens, total.output_tokens, total.cost]).toEqual([2, 115, 3, 1.75]);
});

it("does not make nothing of a cost that is unknown", () => {
  const { models, total } = usageTotals([row("a", "x", 10, null), row("b", "x", 5, 0.25), row("b", "y", 1, 0.5)]);
  expect(models.map((sum) => sum.cost)).toEqual([null, 0.5]);
  expect(total.cost).toBeNull();
});

const summary = (state: SessionSummary["state"], failed = false): SessionSummary => ({
  session_id: "s",
  title: "Tidy up",
  state,
  model: "m",
  workspace: "/w",
  pinned: false,
  archived: false,
  failed,
  last_seq: 1,
  created_at: 0,
  changed_at: 0,
  position: 1,
});

it("tells of what asks and of what ends, and of nothing else", () => {
  expect(newsText(summary("running"), summary("waiting"))).toBe("Tidy up is waiting for you");
  expect(newsText(summary("running"), summary("idle"))).toBe("Tidy up is done");
  expect(newsText(summary("running"), summary("idle", true))).toBe("Tidy up failed");
  expect(newsText(summary("idle"), summary("running"))).toBeNull();
  expect(newsText(summary("waiting"), summary("running"))).toBeNull();
  expect(newsText(summary("idle"), summary("idle"))).toBeNull();
});

it.each([
  ["https://api.openai.com/v1", "openai"],
  ["https://openrouter.ai/api/v1", "openrouter"],
  ["https://api.example.org/v1", "example-org"],
  ["http://127.0.0.1:8000/v1", "at-127-0-0-1-8000"],
  ["nonsense", "custom"],
])("calls the provider at %s %s", (address, name) => {
  expect(nameOf(address)).toBe(name);
});
