import { expect, it } from "vitest";
import type { NestedProgress } from "../src/api/types";
import { apply } from "../src/session/reducer";
import type { Nested } from "../src/session/rows";
import { runningLines } from "../src/timeline/grouping";
import { CONTEXT, emptyState, Story, USAGE } from "./event_log";

function begun() {
  const story = new Story()
    .fact({ type: "turn.started", turn_id: "t1", message_ids: [] })
    .fact({ type: "step.started", turn_id: "t1", step_id: "p1", model: "m" });
  const calls = [{ call_id: "c1", tool: "execute_code", arguments: "{}" }];
  const rest = { usage: USAGE, cost: null, context: CONTEXT, stop_reason: "calls" };
  story.fact({ type: "step.replied", turn_id: "t1", step_id: "p1", text: "", calls, ...rest });
  const start = { by: "model", tool: "execute_code", arguments: "{}", preview: "" };
  return story.fact({ type: "call.started", turn_id: "t1", step_id: "p1", call_id: "c1", ...start });
}

function nestedOf(story: Story): Nested {
  const state = emptyState();
  for (const event of story.events) apply(state, event);
  return state.calls.get("c1")!.nested!;
}

const tell = (story: Story, id: string, nested: NestedProgress): Story =>
  story.live({ type: "call.progress", call_id: id, parent: "c1", nested });

it("each nested call is known from its beginning to its end", () => {
  const story = begun();
  tell(story, "n1", { tool: "terminal", preview: "one" });
  tell(story, "n2", { tool: "terminal", preview: "two" });
  tell(story, "n1", { tool: "terminal", outcome: "failed", duration: 2 });
  const { listed, ...sums } = nestedOf(story);
  expect(sums).toMatchObject({ began: 2, ended: 1, completed: 0, bunched: false });
  expect(listed).toMatchObject([
    { callId: "n1", preview: "one", outcome: "failed", duration: 2 },
    { callId: "n2", preview: "two", outcome: null, duration: null },
  ]);
});

it("bunches leave the sums of each tool, and nothing that only seems to run", () => {
  const story = begun();
  tell(story, "n1", { tool: "terminal", preview: "one" });
  tell(story, "c1", { tool: "read_file", count: 30 });
  tell(story, "n1", { tool: "terminal", outcome: "completed", duration: 9, count: 1 });
  tell(story, "c1", { tool: "read_file", outcome: "completed", duration: 9, count: 28 });
  expect(nestedOf(story)).toMatchObject({
    began: 31,
    ended: 29,
    completed: 29,
    listed: [],
    bunched: true,
    tools: [
      { tool: "terminal", began: 1, ended: { completed: 1 } },
      { tool: "read_file", began: 30, ended: { completed: 28 } },
    ],
  });
});

/** 300 of a crowd, of which one was told before and two are named later; 297 are done. */
function crowd(): Story {
  const story = begun();
  tell(story, "n1", { tool: "terminal", preview: "first" });
  tell(story, "c1", { tool: "terminal", count: 299 });
  tell(story, "c1", { tool: "terminal", outcome: "completed", duration: 9, count: 297 });
  tell(story, "n8", { tool: "terminal", preview: "eight", duration: 1, count: 0 });
  return tell(story, "n9", { tool: "terminal", preview: "nine", duration: 1.5, count: 0 });
}

const shown = (nested: Nested): unknown[] =>
  runningLines(nested).map(({ single, preview, count, ended, form }) => [single ?? "", preview, count, ended, form]);

it("those of a crowd that are named have lines of their own, which are not in the sums", () => {
  const nested = nestedOf(crowd());
  expect(nested).toMatchObject({ began: 300, ended: 297, completed: 297, bunched: true });
  expect(nested.tools).toMatchObject([{ began: 300, ended: { completed: 297 } }]);
  expect(shown(nested)).toEqual([
    ["", "", 297, 297, "completed"],
    ["n1", "first", 1, 0, "running"],
    ["n8", "eight", 1, 0, "running"],
    ["n9", "nine", 1, 0, "running"],
  ]);
});

it("the bar of one that is named begins when it did", () => {
  const story = crowd();
  const naming = story.events.at(-1)!;
  expect(nestedOf(story).listed.at(-1)).toMatchObject({ callId: "n9", at: naming.at - 1.5 });
});

it("one that is named and ends goes into the sums, once", () => {
  const story = crowd();
  tell(story, "n9", { tool: "terminal", outcome: "cancelled", duration: 3 });
  tell(story, "n1", { tool: "terminal", outcome: "completed", duration: 3 });
  tell(story, "n8", { tool: "terminal", preview: "eight", duration: 4, count: 0 });
  const nested = nestedOf(story);
  expect(nested).toMatchObject({ began: 300, ended: 299, completed: 298 });
  expect(shown(nested)).toEqual([
    ["", "", 298, 298, "completed"],
    ["", "", 1, 1, "cancelled"],
    ["n8", "eight", 1, 0, "running"],
  ]);
});

it("a bunch of one names nobody", () => {
  const story = begun();
  tell(story, "n1", { tool: "terminal", preview: "first" });
  tell(story, "c1", { tool: "terminal", count: 1 });
  tell(story, "c1", { tool: "terminal", outcome: "completed", duration: 1, count: 1 });
  expect(shown(nestedOf(story))).toEqual([
    ["", "", 1, 1, "completed"],
    ["n1", "first", 1, 0, "running"],
  ]);
});

it("who comes late to a crowd is shown what those are who saw all of it", () => {
  const seen = crowd();
  tell(seen, "n9", { tool: "terminal", outcome: "cancelled", duration: 3 });
  tell(seen, "c1", { tool: "read_file", count: 40 });
  tell(seen, "c1", { tool: "read_file", outcome: "cancelled", duration: 9, count: 30 });
  const late = begun();
  const one = (id: string, preview: string) => ({ call_id: id, tool: "terminal", start: 1, preview });
  const tools = [
    { tool: "terminal", began: 300, ended: { completed: 297, cancelled: 1 }, first: 1, last: 4 },
    { tool: "read_file", began: 40, ended: { cancelled: 30 }, first: 5, last: 6 },
  ];
  const nested = { began: 340, ended: 328, completed: 297, calls: [one("n1", "first"), one("n8", "eight")], tools };
  const running = [{ call_id: "c1", tool: "execute_code", nested }];
  late.live({ type: "calls.snapshot", after: late.seq, running });
  expect(shown(nestedOf(late))).toEqual(shown(nestedOf(seen)));
  expect(shown(nestedOf(late))).toEqual([
    ["", "", 297, 297, "completed"],
    ["", "", 1, 1, "cancelled"],
    ["", "", 10, 0, "running"],
    ["", "", 30, 30, "cancelled"],
    ["n1", "first", 1, 0, "running"],
    ["n8", "eight", 1, 0, "running"],
  ]);
  const since = (story: Story): number => story.events.find((event) => event.type === "call.started")!.at;
  expect(runningLines(nestedOf(late)).map(({ start }) => start - since(late))).toEqual([1, 1, 5, 5, 1, 1]);
});

it("who comes late to a crowd is shown those that are named in it", () => {
  const story = begun();
  const two = [7, 8].map((at) => ({ call_id: `n${at}`, tool: "terminal", start: at, preview: `wait ${at}` }));
  const tools = [{ tool: "terminal", began: 300, ended: { completed: 297 }, first: 0, last: 9 }];
  const nested = { began: 300, ended: 297, completed: 297, calls: two, tools };
  const running = [{ call_id: "c1", tool: "execute_code", nested }];
  story.live({ type: "calls.snapshot", after: story.seq, running });
  expect(shown(nestedOf(story))).toEqual([
    ["", "", 298, 297, "running"],
    ["n7", "wait 7", 1, 0, "running"],
    ["n8", "wait 8", 1, 0, "running"],
  ]);
  tell(story, "n7", { tool: "terminal", outcome: "cancelled", duration: 9 });
  tell(story, "c1", { tool: "terminal", outcome: "completed", duration: 9, count: 1 });
  expect(nestedOf(story)).toMatchObject({ began: 300, ended: 299, completed: 298 });
  expect(shown(nestedOf(story))).toEqual([
    ["", "", 298, 298, "completed"],
    ["", "", 1, 1, "cancelled"],
    ["n8", "wait 8", 1, 0, "running"],
  ]);
});

it("a container that ended names where all is told, and keeps what was seen of it", () => {
  const story = begun();
  tell(story, "n1", { tool: "terminal", preview: "one" });
  const end = { reason: null, started: true, result: [], duration: 3, outcome: "completed" as const };
  const nested = { calls: 1, completed: 1, blob: "b" };
  story.fact({ type: "call.finished", turn_id: "t1", call_id: "c1", tool: "execute_code", nested, ...end });
  expect(nestedOf(story)).toMatchObject({ began: 1, ended: 1, blob: "b", listed: [{ preview: "one" }] });
});

it("alike ones say together what they have in common only once", () => {
  const story = begun();
  for (const region of ["eu-west-1", "eu-west-2", "us-east-1"]) {
    tell(story, region, { tool: "terminal", preview: `clusters -r ${region}` });
    tell(story, region, { tool: "terminal", outcome: "completed", duration: 1 });
  }
  const previews = (nested: Nested): string[] => runningLines(nested).map((line) => line.preview);
  expect(previews(nestedOf(story))).toEqual(["clusters -r eu-west-1 … us-east-1"]);
  tell(story, "again", { tool: "terminal", preview: "clusters -r eu-west-1" });
  tell(story, "again", { tool: "terminal", outcome: "completed", duration: 1 });
  expect(previews(nestedOf(story))).toEqual(["clusters -r eu-west-1 … clusters -r eu-west-1"]);
});

it("who comes late is shown each of them while they are few, and then their number", () => {
  const late = (calls: object[], began: number): Nested => {
    const story = begun();
    const tools = [{ tool: "terminal", began, ended: { completed: 1 }, first: 0.5, last: 2.5 }];
    const nested = { began, ended: 1, completed: 1, calls, tools };
    const running = [{ call_id: "c1", tool: "execute_code", nested }];
    story.live({ type: "calls.snapshot", after: story.events.length, running } as never);
    tell(story, "n2", { tool: "terminal", outcome: "cancelled", duration: 3 });
    return nestedOf(story);
  };
  const one = { call_id: "n1", tool: "terminal", start: 0.5, preview: "one", outcome: "completed", duration: 2 };
  const two = { call_id: "n2", tool: "terminal", start: 1, preview: "two", outcome: null, duration: null };
  const few = late([one, two], 2);
  expect(few).toMatchObject({ began: 2, ended: 2, completed: 1, bunched: false });
  expect(few.tools).toMatchObject([{ tool: "terminal", began: 2, ended: { completed: 1, cancelled: 1 } }]);
  const start = few.listed[0]!.at - 0.5;
  expect(few.listed).toMatchObject([
    { callId: "n1", preview: "one", at: start + 0.5, outcome: "completed", duration: 2 },
    { callId: "n2", preview: "two", at: start + 1, outcome: "cancelled", duration: 3 },
  ]);
  expect(late([], 300)).toMatchObject({ began: 300, ended: 2, listed: [], bunched: true });
});
