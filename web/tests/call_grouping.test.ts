import { describe, expect, it } from "vitest";
import type { Call } from "../src/session/rows";
import { groupCalls } from "../src/timeline/call_grouping";

function call(callId: string, tool: string, changes: Partial<Call> = {}): Call {
  return { callId, tool, phase: "finished", outcome: "completed", nested: null, ...changes } as Call;
}

const reads = (count: number): Call[] => Array.from({ length: count }, (_, at) => call(`r${at}`, "read_file"));

describe("groupCalls", () => {
  it("folds many calls of one tool where the first of them stood", () => {
    const folded = groupCalls([call("t", "terminal"), ...reads(6), call("w", "write_file")]);
    expect(folded).toEqual(["t", { tool: "read_file", ids: ["r0", "r1", "r2", "r3", "r4", "r5"] }, "w"]);
  });

  it("leaves few as they are", () => {
    expect(groupCalls(reads(5))).toEqual(["r0", "r1", "r2", "r3", "r4"]);
  });

  it("shows what did not go well beside the group", () => {
    const folded = groupCalls([...reads(6), call("bad", "read_file", { outcome: "failed" })]);
    expect(folded.at(-1)).toBe("bad");
  });

  it("folds nothing while a call runs", () => {
    expect(groupCalls([...reads(6), call("on", "terminal", { phase: "started", outcome: null })])).toHaveLength(7);
  });
});
