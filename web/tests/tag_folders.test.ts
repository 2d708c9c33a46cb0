import { describe, expect, it } from "vitest";
import type { SessionSummary } from "../src/api/types";
import { groupByDay } from "../src/session_list/day_groups";
import { between } from "../src/session_list/selection";
import { changedTags, countsDiffer, foldersOf } from "../src/session_list/tag_folders";

function session(id: string, tags: string[], more: Partial<SessionSummary> = {}): SessionSummary {
  return {
    session_id: id,
    title: id,
    state: "idle",
    model: "",
    workspace: "",
    pinned: false,
    archived: false,
    failed: false,
    last_seq: 1,
    created_at: 1,
    changed_at: 1,
    position: 1,
    tags,
    ...more,
  };
}

describe("folders", () => {
  it("hold the sessions with a tag in any case, last changed first", () => {
    const loaded = [
      session("a", ["Work"]),
      session("b", ["work", "Tea"], { changed_at: 2 }),
      session("c", ["Work"], { archived: true }),
    ];
    const counts = [
      { name: "Tea", sessions: 1, archived: 0 },
      { name: "Work", sessions: 5, archived: 1 },
      { name: "old", sessions: 0, archived: 3 },
    ];
    expect(foldersOf(loaded, counts, false)).toEqual([
      { name: "Tea", count: 1, ids: ["b"] },
      { name: "Work", count: 5, ids: ["b", "a"] },
    ]);
    expect(foldersOf(loaded, counts, true).map(({ name, count }) => [name, count])).toEqual([
      ["old", 3],
      ["Work", 1],
    ]);
  });

  it("are there for a tag that was not counted yet", () => {
    expect(foldersOf([session("a", ["New"])], [], false)).toEqual([{ name: "New", count: 1, ids: ["a"] }]);
  });

  it("take their sessions out of the days, and leave pinned ones on top too", () => {
    const groups = groupByDay(
      [session("a", ["Tea"]), session("b", []), session("c", ["Tea"], { pinned: true })],
      5_000,
    );
    expect(groups.map(({ ids }) => ids)).toEqual([["c"], ["b"]]);
  });

  it("are counted anew when tags change, and when a tagged session is archived", () => {
    expect(countsDiffer(undefined, session("a", []))).toBe(false);
    expect(countsDiffer(session("a", ["x"]), session("a", ["x"], { title: "other" }))).toBe(false);
    expect(countsDiffer(session("a", ["x"]), session("a", []))).toBe(true);
    expect(countsDiffer(session("a", ["x"]), session("a", ["x"], { archived: true }))).toBe(true);
  });
});

describe("changed tags", () => {
  it("keep what nobody decided about", () => {
    expect(changedTags(["Tea", "Work"], new Set(["work", "New"]), new Set(["TEA"]))).toEqual(["Work", "New"]);
  });
});

describe("a range", () => {
  it("goes from the last one to this one, in either direction", () => {
    expect(between(["a", "b", "c", "d"], "c", "a")).toEqual(["a", "b", "c"]);
    expect(between(["a", "b", "c"], "gone", "b")).toEqual(["b"]);
  });
});
