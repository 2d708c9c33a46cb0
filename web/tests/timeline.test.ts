import { describe, expect, it } from "vitest";
import type { Outcome } from "../src/api/types";
import { exitCodeOf } from "../src/session/calls";
import type { Call, Nested, NestedItem } from "../src/session/rows";
import { barOf, formOf, originOf, reachOf } from "../src/timeline/bars";
import { runningLines, storedLines, unknownLine } from "../src/timeline/grouping";
import { placeOf, tickFor, tickTexts } from "../src/timeline/scale";
import { coveredTime, joinSpans, totalTime } from "../src/timeline/spans";
import { serialTime, timesOf } from "../src/timeline/turn_times";

describe("the time axis", () => {
  it("is the shortest that holds what there is, and never under a second", () => {
    expect([0, 0.002, 1, 1.1, 6.1, 8.1, 100].map(tickFor)).toEqual([0.25, 0.25, 0.25, 0.5, 2, 3, 30]);
    for (const reach of [0.3, 7, 61, 4_000, 1_000_000]) expect(tickFor(reach) * 4).toBeGreaterThanOrEqual(reach);
  });

  it("says its unit once", () => {
    expect(tickTexts(2)).toEqual(["0 s", "2", "4", "6", "8"]);
    expect(tickTexts(0.25)).toEqual(["0 s", "0.25", "0.5", "0.75", "1"]);
    expect(tickTexts(60)).toEqual(["0 min", "1", "2", "3", "4"]);
    expect(tickTexts(7_200)).toEqual(["0 h", "2", "4", "6", "8"]);
  });

  it("places moments, and keeps those outside at its ends", () => {
    expect([-1, 0, 4, 8, 9].map((at) => placeOf(at, 2))).toEqual([0, 0, 50, 100, 100]);
  });
});

it("stretches are laid together where they meet", () => {
  const spans = [
    { start: 5, end: 6 },
    { start: 0, end: 2 },
    { start: 1, end: 3 },
  ];
  expect(joinSpans(spans)).toEqual([
    { start: 0, end: 3 },
    { start: 5, end: 6 },
  ]);
  expect(joinSpans(spans, 2)).toEqual([{ start: 0, end: 6 }]);
  expect([coveredTime(spans), totalTime(spans)]).toEqual([4, 5]);
  expect([coveredTime([]), joinSpans([])]).toEqual([0, []]);
});

function call(changes: Partial<Call>): Call {
  return {
    callId: "c",
    tool: "terminal",
    arguments: "{}",
    argumentsBlob: null,
    exitCode: null,
    preview: "",
    phase: "finished",
    asking: false,
    startedAt: 10,
    finishedAt: 13,
    finishedSeq: 3,
    output: "",
    done: null,
    total: null,
    note: "",
    nested: null,
    outcome: "completed",
    reason: null,
    started: true,
    result: [],
    duration: 3,
    settled: false,
    ...changes,
  };
}

describe("the bar of a call", () => {
  it("spans what it took", () => {
    expect(barOf(call({}), 9)).toEqual({ form: "completed", start: 10, end: 13 });
  });

  it("has no end while the call runs, and is not there before", () => {
    const running = call({ phase: "started", outcome: null, duration: null, finishedAt: null });
    expect(barOf(running, 9)).toEqual({ form: "running", start: 10, end: null });
    expect(barOf(call({ phase: "asked", startedAt: null }), 9)).toBeNull();
    expect(barOf(call({ phase: "writing", startedAt: null }), null)).toBeNull();
  });

  it("spans the wait of a call that never began to act", () => {
    const denied = call({ outcome: "denied", started: false, startedAt: 13, duration: 0 });
    expect(barOf(denied, 9)).toEqual({ form: "denied", start: 9, end: 13 });
  });

  it("lies on an axis that begins with the reply and reaches to the last end, or to now", () => {
    const calls = [
      call({}),
      call({ startedAt: 11, duration: 7 }),
      call({ started: false, startedAt: 5, finishedAt: 5 }),
    ];
    expect(originOf(9, calls)).toBe(9);
    expect(originOf(null, calls)).toBe(10);
    expect(originOf(null, [])).toBeNull();
    const never = (): number => expect.fail("the clock was read, though nothing runs");
    expect(reachOf(calls, 9, never)).toBe(9);
    expect(reachOf([...calls, call({ phase: "started" })], 9, () => 40)).toBe(31);
  });
});

const item = (at: number, outcome: Outcome | null, duration: number | null = 1, tool = "terminal"): NestedItem => ({
  callId: `n${at}`,
  tool,
  preview: `p${at}`,
  at,
  outcome,
  duration: outcome === null ? null : duration,
});

const nested = (changes: Partial<Nested>): Nested => ({
  began: 0,
  ended: 0,
  completed: 0,
  listed: [],
  bunched: false,
  tools: [],
  blob: null,
  ...changes,
});

describe("nested calls", () => {
  it("that are alike are one line, and those that run or went wrong stay apart", () => {
    const listed = [
      ...Array.from({ length: 11 }, (_, at) => item(at, "completed")),
      item(20, null),
      item(21, "cancelled", 3),
      item(30, "completed", 1, "read_file"),
    ];
    const lines = runningLines(nested({ listed }));
    expect(lines.map(({ tool, form, count, start, end }) => [tool, form, count, start, end])).toEqual([
      ["terminal", "completed", 11, 0, 11],
      ["read_file", "completed", 1, 30, 31],
      ["terminal", "running", 1, 20, null],
      ["terminal", "cancelled", 1, 21, 24],
    ]);
    expect(lines[0]).toMatchObject({ preview: "p0 … p10", ended: 11 });
    expect(lines[0]!.ones).toHaveLength(11);
  });

  it("that run are one line once they are many", () => {
    const lines = runningLines(nested({ listed: Array.from({ length: 6 }, (_, at) => item(at, null)) }));
    expect(lines).toMatchObject([{ form: "running", count: 6, ended: 0, start: 0, end: null }]);
  });

  it("that come in bunches are counted by tool", () => {
    const tool = { tool: "terminal", began: 900, ended: { completed: 640, failed: 2 }, firstAt: 5, lastAt: 9 };
    const lines = runningLines(nested({ began: 900, ended: 642, bunched: true, tools: [tool] }));
    expect(lines).toMatchObject([
      { tool: "terminal", form: "running", count: 898, ended: 640, start: 5, end: null },
      { tool: "terminal", form: "failed", count: 2, ended: 2, start: 5, end: 9 },
    ]);
    const over = { ...tool, began: 642 };
    expect(runningLines(nested({ began: 642, bunched: true, tools: [over] }))).toMatchObject([
      { form: "completed", count: 640, end: 9 },
      { form: "failed", count: 2, end: 9 },
    ]);
  });

  it("are a number where nothing else is known of them", () => {
    expect(unknownLine(nested({ began: 500, ended: 400, bunched: true }), 7)).toMatchObject({
      tool: "",
      form: "running",
      count: 500,
      ended: 400,
      start: 7,
      end: null,
    });
  });

  it("of a container that has ended are what its blob tells, with previews for those who saw them", () => {
    const one = (start: number, outcome: Outcome) => ({ call_id: `n${start}`, tool: "t", start, duration: 1, outcome });
    const calls = [one(0, "completed"), one(1, "completed"), one(2, "completed"), one(3, "failed")];
    const sums = [{ tool: "t", calls: 5, duration: 9, completed: 4 }];
    const lines = storedLines({ calls, sums }, 100, [item(0, "completed"), item(2, "completed")]);
    expect(lines.map(({ form, count, preview, start, end }) => [form, count, preview, start, end])).toEqual([
      ["completed", 3, "p0 … p2", 100, 103],
      ["failed", 1, "", 103, 104],
      ["completed", 4, "", 103, 103],
      ["failed", 1, "", 103, 103],
    ]);
    const withOutcomes = [{ ...sums[0]!, ended: { completed: 4, cancelled: 1 } }];
    expect(storedLines({ calls: [], sums: withOutcomes }, 100, []).map(({ form, count }) => [form, count])).toEqual([
      ["completed", 4],
      ["cancelled", 1],
    ]);
  });
});

it("a command that ends with another code than 0 does not look done", () => {
  expect(formOf({ outcome: "completed", exitCode: 3 })).toBe("exited");
  expect(formOf({ outcome: "completed", exitCode: null })).toBe("completed");
  expect(exitCodeOf([{ type: "json", value: { output: "", exit_code: 3 } }])).toBe(3);
  expect(exitCodeOf([{ type: "json", value: { output: "", exit_code: 0 } }])).toBeNull();
  expect(exitCodeOf([{ type: "text", text: "exit_code 3" }])).toBeNull();
});

describe("the time of a turn", () => {
  const timed = (finishedAt: number, duration: number) => ({ finishedAt, duration, isDone: true, nested: null });

  it("is the model's from the last word or result to the reply, and the tools' while one runs", () => {
    const times = timesOf(
      [
        { what: "said", at: 10 },
        { what: "replied", at: 12, calls: [timed(15, 3), timed(14, 2)] },
        { what: "said", at: 16 },
        { what: "replied", at: 17, calls: [] },
      ],
      0,
    );
    expect(times).toMatchObject({ model: 3, tools: 3, serial: 5, saved: 2, calls: 2 });
    const model = [
      { start: 10, end: 12 },
      { start: 16, end: 17 },
    ];
    expect(times.course).toEqual({ model, tools: [{ start: 12, end: 15 }] });
  });

  it("does not begin before what was before it is over", () => {
    expect(
      timesOf(
        [
          { what: "said", at: 10 },
          { what: "replied", at: 30, calls: [] },
        ],
        28,
      ).model,
    ).toBe(2);
  });

  it("counts what a container called one after another, and what it did by itself", () => {
    const call = (start: number, duration: number) => ({
      call_id: "",
      tool: "t",
      start,
      duration,
      outcome: "completed" as const,
    });
    const fan = {
      finishedAt: 10,
      duration: 6,
      isDone: true,
      nested: { calls: [call(1, 4), call(1, 4), call(2, 3)], sums: [] },
    };
    expect(serialTime(fan)).toBe(2 + 11);
    expect(timesOf([{ what: "replied", at: 4, calls: [fan] }], 4)).toMatchObject({
      tools: 6,
      serial: 13,
      saved: 7,
      calls: 4,
    });
    const crowd = {
      ...fan,
      nested: { calls: [call(0, 6)], sums: [{ tool: "t", calls: 9, duration: 20, completed: 9 }] },
    };
    expect(serialTime(crowd)).toBe(26);
  });

  it("was not saved by what was cancelled or failed, also within a container", () => {
    const lost = { ...timed(15, 3), isDone: false };
    const times = timesOf([{ what: "replied", at: 12, calls: [timed(15, 3), lost, lost] }], 12);
    expect(times).toMatchObject({ tools: 3, serial: 3, saved: 0, calls: 3 });
    const one = { call_id: "", tool: "t", start: 0, duration: 4 };
    const calls = [
      { ...one, outcome: "completed" as const },
      { ...one, outcome: "cancelled" as const },
      { ...one, outcome: "failed" as const },
    ];
    expect(serialTime({ ...timed(10, 4), nested: { calls, sums: [] } })).toBe(4);
    const sums = [{ tool: "t", calls: 4, duration: 20, completed: 2 }];
    expect(serialTime({ ...timed(10, 4), nested: { calls: [], sums } })).toBe(10);
  });
});
