import { describe, expect, it } from "vitest";
import type { LoggedEvent } from "../src/api/types";
import { beginIn, Moments, pauseBetween, upToEnd } from "../src/replay/moments";
import type { MessageRow } from "../src/session/rows";
import { wholeStory } from "./story";

const FACTS = wholeStory().events.filter((event): event is LoggedEvent => "seq" in event);
const MESSAGE: MessageRow = {
  kind: "message",
  key: "m1",
  seq: 2,
  turnId: "t1",
  at: 1,
  text: "begin",
  mode: "queue",
  attachments: [],
  variants: [],
};
const TURN = { sessionId: "s", turnId: "t1", message: MESSAGE };
const FIRST = upToEnd(FACTS, "t1").facts;

/** What a person can see of a moment. */
function seen(moments: Moments, count: number): unknown {
  const { order, rows, calls, turn, approvals } = moments.after(count);
  return structuredClone({ order, rows: order.map((key) => rows.get(key)), calls: [...calls], turn, approvals });
}

describe("the facts of a turn", () => {
  it("begin with its start and end with its end", () => {
    expect(FACTS[beginIn(FACTS, "t1")!]!.type).toBe("turn.started");
    expect(FIRST.at(-1)!.type).toBe("turn.finished");
    expect(upToEnd(FACTS, "t1").ended).toBe(true);
    expect(beginIn(FACTS, "none")).toBeNull();
    expect(upToEnd(FACTS.slice(0, 3), "t1")).toEqual({ facts: FACTS.slice(0, 3), ended: false });
  });
});

describe("a moment", () => {
  it("is the same whichever way it is reached", () => {
    const wandering = new Moments(TURN, FIRST);
    for (const count of [FIRST.length, 3, 9, 1, FIRST.length - 2, 0, FIRST.length]) {
      expect(seen(wandering, count)).toEqual(seen(new Moments(TURN, FIRST), count));
    }
  });

  it("knows nothing of what comes later", () => {
    const moments = new Moments(TURN, FIRST);
    const started = FIRST.findIndex((fact) => fact.type === "call.started") + 1;
    expect(moments.after(started).calls.get("c1")).toMatchObject({ phase: "started", outcome: null });
    expect(moments.after(FIRST.length).calls.get("c1")).toMatchObject({ phase: "finished", outcome: "unknown" });
  });

  it("shows the message that began the turn, though it was accepted before", () => {
    const delivered = FIRST.slice(1);
    const state = new Moments(TURN, delivered).after(1);
    expect(state.rows.get("m1")).toMatchObject({ kind: "message", text: "begin" });
  });
});

it("waits as long as it took, but never for minutes", () => {
  const at = (seconds: number): LoggedEvent => ({ ...FACTS[0]!, at: seconds });
  expect(pauseBetween(at(10), at(12), "1")).toBe(2_000);
  expect(pauseBetween(at(10), at(12), "4")).toBe(500);
  expect(pauseBetween(at(10), at(3_600), "1")).toBe(5_000);
  expect(pauseBetween(at(10), at(12), "max")).toBe(30);
  expect(pauseBetween(at(10), at(10), "1")).toBe(30);
});
