/** The bar of a call on the time axis of its step. Pure. */

import type { Call } from "../session/rows";
import type { BarForm } from "./grouping";

export interface BarSpan {
  readonly form: BarForm;
  readonly start: number;
  /** Null while it runs: the bar grows. */
  readonly end: number | null;
}

/** How a call that has ended looks: a command that failed by its exit code is not done well. */
export function formOf({ outcome, exitCode }: Pick<Call, "outcome" | "exitCode">): BarForm {
  return outcome === "completed" && exitCode !== null ? "exited" : (outcome ?? "unknown");
}

/**
 * From the call's own facts: its start if it was seen, else its end less its duration. A call that
 * never began to act has waited since the reply: what it was denied, or cut off from, spans that.
 */
export function barOf(call: Call, origin: number | null): BarSpan | null {
  if (call.phase === "started" && call.startedAt !== null) return { form: "running", start: call.startedAt, end: null };
  if (call.phase !== "finished") return null;
  const form = formOf(call);
  const end = call.finishedAt ?? origin ?? 0;
  if (!call.started) return { form, start: Math.min(origin ?? end, end), end };
  const start = call.startedAt ?? end - (call.duration ?? 0);
  return { form, start, end: start + (call.duration ?? 0) };
}

/** Where the axis begins: with the reply that asked for the calls, or with the first of them. */
export function originOf(repliedAt: number | null, calls: readonly Call[]): number | null {
  const starts = calls.flatMap((call) => (call.startedAt === null || !call.started ? [] : [call.startedAt]));
  const all = repliedAt === null ? starts : [repliedAt, ...starts];
  return all.length === 0 ? null : Math.min(...all);
}

/** How far the axis must reach by now, in seconds from its origin. */
export function reachOf(calls: readonly Call[], origin: number, now: () => number): number {
  let reach = 0;
  for (const call of calls) {
    const bar = barOf(call, origin);
    if (bar !== null) reach = Math.max(reach, (bar.end ?? now()) - origin);
  }
  return reach;
}
