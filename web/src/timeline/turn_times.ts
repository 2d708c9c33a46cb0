/** Where the time of a turn went, and how long its calls were one after another. Pure. */

import type { NestedCalls } from "../api/types";
import { coveredTime, joinSpans, type Span, totalTime } from "./spans";

export interface TimedCall {
  readonly finishedAt: number;
  readonly duration: number;
  /** Whether it came to its end: what was cancelled or failed saved nobody any time. */
  readonly isDone: boolean;
  /** What it called itself, if that is known. */
  readonly nested: NestedCalls | null;
}

/** What happened in a turn, in order. */
export type Moment =
  | { readonly what: "said"; readonly at: number }
  | { readonly what: "replied"; readonly at: number; readonly calls: readonly TimedCall[] };

export interface TurnTimes {
  readonly model: number;
  readonly tools: number;
  readonly serial: number;
  readonly saved: number;
  readonly calls: number;
  /** When the model worked and when at least one call ran, on the clock. */
  readonly course: { readonly model: readonly Span[]; readonly tools: readonly Span[] };
}

/** The model works from the last word or result until its reply is whole; `from` is when it was free. */
export function timesOf(moments: readonly Moment[], from: number): TurnTimes {
  const spans: Span[] = [];
  const done: Span[] = [];
  const thought: Span[] = [];
  let serial = 0;
  let calls = 0;
  let free = from;
  for (const moment of moments) {
    if (moment.what === "said") {
      free = Math.max(free, moment.at);
      continue;
    }
    thought.push({ start: Math.min(free, moment.at), end: moment.at });
    free = Math.max(free, moment.at);
    for (const call of moment.calls) {
      spans.push(spanOf(call));
      if (call.isDone) {
        done.push(spanOf(call));
        serial += serialTime(call);
      }
      calls += 1 + countOf(call.nested);
      free = Math.max(free, call.finishedAt);
    }
  }
  const tools = coveredTime(spans);
  const course = { model: thought, tools: joinSpans(spans) };
  return { model: totalTime(thought), tools, serial, saved: Math.max(0, serial - coveredTime(done)), calls, course };
}

function spanOf({ finishedAt, duration }: TimedCall): Span {
  return { start: finishedAt - duration, end: finishedAt };
}

/** How long a call takes if nothing runs beside anything: its own time and all that it called. */
export function serialTime({ duration, nested }: TimedCall): number {
  if (nested === null) return duration;
  const span = ({ start, duration: length }: { start: number; duration: number }): Span => ({
    start,
    end: start + length,
  });
  const calls = nested.calls ?? [];
  const done = totalTime(calls.filter(({ outcome }) => outcome === "completed").map(span));
  // Of what is not listed only sums are known: those that came to their end count by their number.
  const unlisted = (nested.sums ?? []).reduce((sum, tool) => sum + (tool.duration * tool.completed) / tool.calls, 0);
  const own = Math.max(0, duration - coveredTime(calls.map(span)));
  // Of what is not listed nobody knows when it ran; it ran inside the container all the same.
  return Math.max(duration, unlisted > 0 ? done + unlisted : own + done);
}

function countOf(nested: NestedCalls | null): number {
  if (nested === null) return 0;
  return (nested.calls ?? []).length + (nested.sums ?? []).reduce((sum, sumOfTool) => sum + sumOfTool.calls, 0);
}
