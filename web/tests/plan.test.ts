import { expect, it } from "vitest";
import type { ResultPart } from "../src/api/types";
import { addOlder } from "../src/session/history_window";
import { readPlan, replacePlan } from "../src/session/plan";
import { apply } from "../src/session/reducer";
import { runningLines } from "../src/timeline/grouping";
import { emptyState, Story } from "./event_log";

const FINISHED = { outcome: "completed", reason: null, started: true, duration: 1, nested: null } as const;

function wrote(story: Story, turn: string, call: string, ...items: readonly { text: string; status: string }[]): Story {
  const result: ResultPart[] = [{ type: "json", value: { items } }];
  return story.fact({ type: "call.finished", turn_id: turn, call_id: call, tool: "todo", result, ...FINISHED });
}

const item = (text: string, status = "open") => ({ text, status });

function fold(story: Story) {
  const state = emptyState();
  for (const event of story.events) apply(state, event);
  return state;
}

it("the last call that completed holds the plan", () => {
  const story = wrote(new Story(), "t1", "c1", item("read", "doing"), item("write"));
  wrote(story, "t1", "c2", item("read", "done"), item("write", "doing"));
  const failed = { ...FINISHED, outcome: "failed" as const };
  story.fact({ type: "call.finished", turn_id: "t1", call_id: "c3", tool: "todo", result: [], ...failed });
  expect(fold(story).plan?.items).toEqual([item("read", "done"), item("write", "doing")]);
});

it("a result of another form is a plan without steps", () => {
  const result: ResultPart[] = [{ type: "json", value: { items: [7, null, { text: 3 }, { text: "read" }] } }];
  const story = new Story();
  story.fact({ type: "call.finished", turn_id: "t1", call_id: "c1", tool: "todo", result, ...FINISHED });
  expect(fold(story).plan?.items).toEqual([{ text: "read" }]);
});

it("an older page of the transcript does not bring an older plan back", () => {
  const story = wrote(new Story(), "t1", "c1", item("old"));
  const old = story.events[0]!;
  wrote(story, "t1", "c2", item("new"));
  const state = fold(story);
  addOlder(state, { rows: [{ seq: 1, event: old as never }], next: null, seq: 2 });
  expect(state.plan?.items).toEqual([item("new")]);
});

it("a plan is gone with its turn, and the one that the server knows takes its place", () => {
  const story = wrote(new Story(), "t1", "c1", item("old"));
  wrote(story, "t2", "c2", item("new"));
  story.fact({ type: "turn.undone", turn_id: "t2", by: "user" } as never);
  const state = fold(story);
  expect(state.plan).toBeNull();
  replacePlan(state, readPlan({ items: [{ text: "old", status: "open" }], seq: 1 }));
  expect(state.plan?.items).toEqual([item("old")]);
});

it("child agents have lines of their own where other calls share one", () => {
  const of = (tool: string, count: number) =>
    Array.from({ length: count }, (_, number) => ({
      callId: `n${number}`,
      tool,
      preview: "",
      at: number,
      outcome: "completed" as const,
      duration: 1,
    }));
  const nested = { began: 9, ended: 9, completed: 9, bunched: false, tools: [], blob: null };
  expect(runningLines({ ...nested, listed: of("agent", 9) }).map((line) => line.single)).toHaveLength(9);
  expect(runningLines({ ...nested, listed: of("terminal", 9) })).toHaveLength(1);
  expect(runningLines({ ...nested, listed: of("agent", 30) })).toHaveLength(1);
});
