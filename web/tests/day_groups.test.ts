import { expect, it } from "vitest";
import type { SessionSummary } from "../src/api/types";
import { groupByDay } from "../src/session_list/day_groups";
import { emptyView } from "./event_log";

const NOW = new Date(2026, 4, 20, 9, 0).getTime();
const at = (day: number, hour: number): number => new Date(2026, 4, day, hour).getTime() / 1_000;

function session(session_id: string, changed_at: number, more: Partial<SessionSummary> = {}): SessionSummary {
  return { ...emptyView().summary, session_id, changed_at, ...more };
}

it("puts what is pinned and what runs first, then day by day, newest first", () => {
  const groups = groupByDay(
    [
      session("old", at(12, 10)),
      session("yesterday", at(19, 23)),
      session("early", at(20, 1)),
      session("late", at(20, 8)),
      session("runs", at(20, 7), { state: "running", created_at: 1 }),
      session("asks", at(1, 7), { state: "waiting", created_at: 2 }),
      session("pinned", at(2, 7), { pinned: true, state: "running" }),
    ],
    NOW,
  );
  expect(groups.map(({ name, daysAgo, ids }) => [name, daysAgo, ...ids])).toEqual([
    ["pinned", -1, "pinned"],
    ["active", -1, "asks", "runs"],
    ["2026-05-20", 0, "late", "early"],
    ["2026-05-19", 1, "yesterday"],
    ["2026-05-12", 8, "old"],
  ]);
});
