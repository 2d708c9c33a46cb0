/**
 * Many alike calls of a step that are done: one line stands for those that went well, so that the others
 * are seen. Pure.
 */

import type { Call } from "../session/rows";

/** Fewer than this are read faster than a line that stands for them. */
const MANY = 6;

export interface CallGroup {
  readonly tool: string;
  readonly ids: readonly string[];
}

/** In the order of the calls; a group stands where its first call stood. Nothing is folded while one runs. */
export function groupCalls(calls: readonly Call[]): readonly (string | CallGroup)[] {
  const groups = new Map<string, string[]>();
  const isDone = calls.every((call) => call.phase === "finished");
  for (const call of isDone ? calls.filter(isPlain) : [])
    groups.set(call.tool, [...(groups.get(call.tool) ?? []), call.callId]);
  const folded = new Map([...groups].filter(([, ids]) => ids.length >= MANY));
  const hidden = new Set([...folded.values()].flat());
  return calls.flatMap(({ callId, tool }): (string | CallGroup)[] => {
    if (!hidden.has(callId)) return [callId];
    const ids = folded.get(tool)!;
    return ids[0] === callId ? [{ tool, ids }] : [];
  });
}

/** What went well and has nothing below it. */
function isPlain(call: Call): boolean {
  return call.outcome === "completed" && !call.exitCode && call.nested === null;
}
