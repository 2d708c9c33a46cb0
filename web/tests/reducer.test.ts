import { describe, expect, it } from "vitest";
import type { SessionEvent } from "../src/api/types";
import { trim } from "../src/session/history_window";
import { apply } from "../src/session/reducer";
import type { StepRow } from "../src/session/rows";
import { CONTEXT, emptyState, plain, Story, snapshotAfter, USAGE } from "./event_log";
import { wholeStory } from "./story";

function fold(events: readonly SessionEvent[]) {
  const state = emptyState();
  for (const event of events) apply(state, event);
  return state;
}

const facts = (events: readonly SessionEvent[]) => events.filter((event) => "seq" in event);

describe("a story", () => {
  const { events } = wholeStory();
  const whole = fold(events);

  it("is told in rows, each where it happened", () => {
    expect(whole.order).toEqual(["m1", "note:3", "note:5", "p1", "m2", "note:18", "k1", "p2", "m4", "end:t3"]);
  });

  it("leaves nothing that waits and nothing that runs", () => {
    expect(whole.turn).toBeNull();
    expect([whole.queue, whole.steers, whole.approvals, whole.questions]).toEqual([[], [], [], []]);
    expect([...whole.rows.values()].filter((row) => row.kind === "step" && row.live)).toEqual([]);
  });

  it("keeps of its calls those that the reply asked for, and those of a person", () => {
    expect([...whole.calls.keys()].sort()).toEqual(["c1", "c2", "k1"]);
    expect(whole.calls.get("c1")).toMatchObject({ outcome: "unknown", settled: true, preview: "ls" });
    expect(whole.calls.get("c1")?.arguments).toBe('{"command":"ls"}');
    expect(whole.calls.get("c2")).toMatchObject({ outcome: "cancelled", started: false });
  });

  it("sums up what was spent", () => {
    expect(whole.usage.input_tokens).toBe(20);
    expect(whole.cost).toBe(1);
    expect(whole.context).toEqual(CONTEXT);
  });

  it("tells why a turn failed and what to do", () => {
    expect(whole.rows.get("end:t3")).toMatchObject({ outcome: "failed", error: { kind: "auth", hint: "set a key" } });
  });

  it("is the same from its facts alone", () => {
    expect(plain(fold(facts(events)))).toEqual(plain(whole));
  });

  it("is the same however often each event comes", () => {
    const twice = facts(events).flatMap((event) => [event, event]);
    expect(plain(fold(twice))).toEqual(plain(whole));
    const state = fold(events);
    for (const event of facts(events)) expect(apply(state, event)).toBe("known");
    expect(plain(state)).toEqual(plain(whole));
  });

  it.each(events.map((_, at) => at))("is the same if the connection is lost after event %i", (at) => {
    const state = fold(events.slice(0, at));
    // What passed by meanwhile is lost; the facts come, then the step that streams now.
    const back = Math.min(events.length, at + 4);
    for (const event of facts(events.slice(0, back))) apply(state, event);
    const snapshot = snapshotAfter(events.slice(0, back));
    if (snapshot !== null) expect(apply(state, snapshot)).toBe("applied");
    expect(liveSteps(state)).toEqual(liveSteps(fold(events.slice(0, back))));
    for (const event of events.slice(back)) apply(state, event);
    expect(plain(state)).toEqual(plain(whole));
  });

  it.each(events.map((_, at) => at))("is the same if the reader was too slow at event %i", (at) => {
    const state = fold(events.slice(0, at));
    apply(state, { type: "resync", session_id: "s-1", at: 0 });
    expect(
      liveSteps(state)
        .map((row) => row.text)
        .join(""),
    ).toBe("");
    const snapshot = snapshotAfter(events.slice(0, at));
    if (snapshot !== null) apply(state, snapshot);
    expect(liveSteps(state)).toEqual(liveSteps(fold(events.slice(0, at))));
    for (const event of events.slice(at)) apply(state, event);
    expect(plain(state)).toEqual(plain(whole));
  });

  it("refuses a fact that comes too early, and takes nothing of it", () => {
    const state = fold(facts(events).slice(0, 3));
    const before = structuredClone(plain(state));
    expect(apply(state, facts(events)[5]!)).toBe("gap");
    expect(plain(state)).toEqual(before);
  });
});

function liveSteps(state: ReturnType<typeof fold>): StepRow[] {
  return [...state.rows.values()].filter((row): row is StepRow => row.kind === "step" && row.live);
}

describe("a live step", () => {
  const begun = () =>
    new Story()
      .fact({ type: "turn.started", turn_id: "t1", message_ids: [] })
      .fact({ type: "step.started", turn_id: "t1", step_id: "p1", model: "m" })
      .text("p1", "Hello ", "there");

  it("is replaced in place by its reply", () => {
    const story = begun();
    const state = fold(story.events);
    expect(state.rows.get("p1")).toMatchObject({ live: true, text: "Hello there" });
    const { order } = state;
    const rest = { usage: USAGE, cost: null, context: CONTEXT, stop_reason: "stop" };
    story.fact({ type: "step.replied", turn_id: "t1", step_id: "p1", text: "Hello there.", ...rest });
    apply(state, story.events.at(-1)!);
    expect(state.order).toBe(order);
    expect(state.rows.get("p1")).toMatchObject({ live: false, text: "Hello there." });
    expect(state.cost).toBeNull();
  });

  it("takes no delta once it is settled, and none of a step that nobody knows", () => {
    const story = begun();
    const rest = { usage: null, cost: 0, context: CONTEXT, stop_reason: "stop" };
    story.fact({ type: "step.replied", turn_id: "t1", step_id: "p1", text: "Whole", ...rest });
    const state = fold(story.events);
    const late = { type: "text.delta", session_id: "s-1", at: 0, text: "more" } as const;
    expect(apply(state, { ...late, step_id: "p1" })).toBe("known");
    expect(apply(state, { ...late, step_id: "p7" })).toBe("known");
    expect(state.rows.get("p1")).toMatchObject({ text: "Whole" });
    expect(state.rows.has("p7")).toBe(false);
  });

  it("leaves the rows of others untouched", () => {
    const story = begun();
    const state = fold(story.events);
    state.touched.rows.clear();
    story.text("p1", "!");
    apply(state, story.events.at(-1)!);
    expect([...state.touched.rows]).toEqual(["p1"]);
  });

  it("is skipped with everything else that nobody knows", () => {
    const state = fold(begun().events);
    expect(apply(state, { type: "new.thing", session_id: "s-1", at: 0, seq: 3 } as unknown as SessionEvent)).toBe(
      "applied",
    );
    expect(state.seq).toBe(3);
    expect(apply(state, { type: "new.delta", session_id: "s-1", at: 0 } as unknown as SessionEvent)).toBe("known");
  });
});

describe("the rows", () => {
  it("of an undone turn are gone", () => {
    const story = wholeStory();
    story.fact({ type: "turn.undone", turn_id: "t1", by: "me" });
    const state = fold(story.events);
    expect(state.order).toEqual(["note:18", "k1", "m4", "end:t3"]);
    expect([...state.calls.keys()]).toEqual(["k1"]);
  });

  it("that are oldest can be forgotten, and asked for again", () => {
    const state = fold(wholeStory().events);
    trim(state, 4);
    expect(state.order).toEqual(["k1", "p2", "m4", "end:t3"]);
    expect(state.older).toBe(state.rows.get("k1")?.seq);
    expect([...state.calls.keys()]).toEqual(["k1"]);
  });
});
