/** The turns of a loaded session: where each ends, and where its time went. */

import { computed, type ReadonlySignal } from "@preact/signals";
import type { Row, StepRow } from "../session/rows";
import type { Opened } from "../session/session_store";
import { storedNested } from "./stored_calls";
import { type Moment, type TimedCall, type TurnTimes, timesOf } from "./turn_times";

const known = new WeakMap<Opened, ReadonlySignal<ReadonlyMap<string, string>>>();

/** The last row of each turn. */
export function lastRows(opened: Opened): ReadonlySignal<ReadonlyMap<string, string>> {
  const found = known.get(opened);
  if (found !== undefined) return found;
  const made = computed(() => {
    const last = new Map<string, string>();
    for (const key of opened.shown.value) {
      const row = opened.peek(key);
      if (row !== undefined && row.turnId !== null && row.kind !== "call") last.set(row.turnId, key);
    }
    // Where rows are missing below, the end of the last turn may be among them.
    if (opened.apart.value) last.delete([...last.keys()].at(-1) ?? "");
    return last;
  });
  known.set(opened, made);
  return made;
}

/** Which step of its turn it is, counted from 1; null if the beginning of the turn is not here. */
export function stepNumber(opened: Opened, key: string): number | null {
  const order = opened.shown.value;
  const turnId = opened.peek(key)?.turnId ?? null;
  let number = 0;
  for (let at = order.lastIndexOf(key); at >= 0; at--) {
    const row = opened.peek(order[at]!);
    if (row === undefined || row.kind === "call" || row.turnId === null) continue;
    if (row.turnId !== turnId) return number;
    if (row.kind === "step") number += 1;
  }
  return opened.head.older.value === null ? number : null;
}

/** Null if it ran no calls, or if a part of it is not here. Reads signals. */
export function turnTimes(opened: Opened, turnId: string): TurnTimes | null {
  const { rows, before } = rowsOf(opened, turnId);
  if (rows === null) return null;
  const moments: Moment[] = [];
  for (const row of rows) {
    if (row.kind === "message") moments.push({ what: "said", at: row.at });
    else if (row.kind === "step" && row.repliedAt !== null) {
      const calls = timedCalls(opened, row);
      if (calls === null) return null;
      moments.push({ what: "replied", at: row.repliedAt, calls });
    }
  }
  const times = timesOf(moments, before);
  return times.calls === 0 ? null : times;
}

/** The rows of the turn, and when what was before it was over; null if its beginning is missing. */
function rowsOf(opened: Opened, turnId: string): { rows: readonly Row[] | null; before: number } {
  const order = opened.shown.value;
  const last = lastRows(opened).value.get(turnId);
  const rows: Row[] = [];
  for (let at = last === undefined ? -1 : order.lastIndexOf(last); at >= 0; at--) {
    const row = opened.row(order[at]!).value;
    if (row === undefined) continue;
    if (row.turnId === turnId) rows.unshift(row);
    else if (row.turnId !== null && row.kind !== "call") return { rows, before: endOf(opened, row) };
  }
  return { rows: opened.head.older.value === null && rows.length > 0 ? rows : null, before: 0 };
}

function endOf(opened: Opened, row: Row): number {
  if (row.kind !== "step") return row.at;
  const ends = row.calls.map((id) => opened.call(id).value?.finishedAt ?? 0);
  return Math.max(row.repliedAt ?? row.at, ...ends);
}

/** Of those that acted; null while one of them is not over, or is still read. */
function timedCalls(opened: Opened, row: StepRow): readonly TimedCall[] | null {
  const calls: TimedCall[] = [];
  for (const id of row.calls) {
    const call = opened.call(id).value;
    if (call === undefined || !call.started) continue;
    if (call.finishedAt === null) return null;
    const blob = call.nested?.blob ?? null;
    const nested = blob === null ? null : storedNested(opened.id, blob).value;
    if (blob !== null && nested === null) return null;
    calls.push({ finishedAt: call.finishedAt, duration: call.duration ?? 0, nested });
  }
  return calls;
}
