import { describe, expect, it } from "vitest";
import type { UsageGroup } from "../src/api/types";
import { barsOf, beginOf, mostFirst, periodOf, shareOf } from "../src/usage_screen/periods";

const NOON = new Date(2026, 2, 30, 12).getTime();

const day = (name: string, input_tokens: number, cost: number | null = 1): UsageGroup => ({
  name,
  requests: 1,
  input_tokens,
  cached_tokens: 0,
  output_tokens: 1,
  reasoning_tokens: 0,
  cost,
  known_cost: cost ?? 0,
  turns: 0,
  failed_turns: 0,
  first_token: null,
});

describe("a period", () => {
  it("begins at a midnight of the calendar, and today is one of its days", () => {
    expect(new Date(beginOf("today", NOON)! * 1_000)).toEqual(new Date(2026, 2, 30));
    expect(new Date(beginOf("7", NOON)! * 1_000)).toEqual(new Date(2026, 2, 24));
    expect(new Date(beginOf("90", NOON)! * 1_000)).toEqual(new Date(2025, 11, 31));
    expect(beginOf("all", NOON)).toBeNull();
  });

  it.each([
    ["7", "7"],
    ["", "30"],
    ["8", "30"],
    ["constructor", "30"],
  ])("%s in the address is %s", (name, period) => {
    expect(periodOf(name)).toBe(period);
  });
});

describe("bars", () => {
  it("are there for days without any use too", () => {
    const bars = barsOf([day("2026-03-28", 10)], beginOf("7", NOON), NOON);
    expect(bars.map((bar) => [bar.name, bar.input_tokens])).toEqual([
      ["2026-03-24", 0],
      ["2026-03-25", 0],
      ["2026-03-26", 0],
      ["2026-03-27", 0],
      ["2026-03-28", 10],
      ["2026-03-29", 0],
      ["2026-03-30", 0],
    ]);
  });

  it("begin with the first use if the period has no beginning, and are none without use", () => {
    expect(barsOf([day("2026-03-29", 1)], null, NOON)).toHaveLength(2);
    expect(barsOf([], null, NOON)).toEqual([]);
  });

  it("are months if there are many days, and an unknown cost makes a month unknown", () => {
    const bars = barsOf([day("2025-11-05", 10), day("2025-11-06", 5, null), day("2026-01-02", 3)], null, NOON);
    expect(bars.map((bar) => [bar.name, bar.input_tokens, bar.cost, bar.known_cost])).toEqual([
      ["2025-11", 15, null, 1],
      ["2025-12", 0, 0, 0],
      ["2026-01", 3, 1, 1],
      ["2026-02", 0, 0, 0],
      ["2026-03", 0, 0, 0],
    ]);
  });
});

it("has no share of nothing", () => {
  expect(shareOf(1, 4)).toBe(0.25);
  expect(shareOf(0, 0)).toBeNull();
});

it("shows the most first, and the same amounts by name", () => {
  const names = mostFirst([day("b", 1), day("a", 1), day("c", 2)], (group) => group.input_tokens);
  expect(names.map(({ name }) => name)).toEqual(["c", "a", "b"]);
});
