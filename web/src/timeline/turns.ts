/** The turns of a loaded session: where each ends, and where its time went. */

import { computed, type ReadonlySignal } from "@preact/signals";
import type { Row, StepRow } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { storedNested } from "./stored_calls";
import { type Moment, type TimedCall, type TurnTimes, timesOf } from "./turn_times";

const lastRowsOf = new WeakMap<SessionStore, ReadonlySignal<ReadonlyMap<string, string>>>();

/** The last row of each turn. */
export function lastRows(session: SessionStore): ReadonlySignal<ReadonlyMap<string, string>> {
  const existing = lastRowsOf.get(session);
  if (existing !== undefined) return existing;
  const created = computed(() => {
    const last = new Map<string, string>();
    for (const key of session.shown.value) {
      const row = session.peek(key);
      if (row !== undefined && row.turnId !== null && row.kind !== "call") last.set(row.turnId, key);
    }
    // Where rows are missing below, the end of the last turn may be among them.
    if (session.apart.value) last.delete([...last.keys()].at(-1) ?? "");
    return last;
  });
  lastRowsOf.set(session, created);
  return created;
}

/** Which step of its turn it is, counted from 1; null if the beginning of the turn is not here. */
export function stepNumber(session: SessionStore, key: string): number | null {
  const order = session.shown.value;
  const turnId = session.peek(key)?.turnId ?? null;
  let number = 0;
  for (let at = order.lastIndexOf(key); at >= 0; at--) {
    const row = session.peek(order[at]!);
    if (row === undefined || row.kind === "call" || row.turnId === null) continue;
    if (row.turnId !== turnId) return number;
    if (row.kind === "step") number += 1;
  }
  return session.head.older.value === null ? number : null;
}

/** Null if it ran no calls, or if a part of it is not here. Reads signals. */
export function turnTimes(session: SessionStore, turnId: string): TurnTimes | null {
  const { rows, before } = rowsOf(session, turnId);
  if (rows === null) return null;
  const moments: Moment[] = [];
  for (const row of rows) {
    if (row.kind === "message") moments.push({ what: "said", at: row.at });
    else if (row.kind === "step" && row.repliedAt !== null) {
      const calls = timedCalls(session, row);
      if (calls === null) return null;
      moments.push({ what: "replied", at: row.repliedAt, calls });
    }
  }
  const times = timesOf(moments, before);
  return times.calls === 0 ? null : times;
}

/** The rows of the turn, and when what was before it was over; null if its beginning is missing. */
function rowsOf(session: SessionStore, turnId: string): { rows: readonly Row[] | null; before: number } {
  const order = session.shown.value;
  const last = lastRows(session).value.get(turnId);
  const rows: Row[] = [];
  for (let at = last === undefined ? -1 : order.lastIndexOf(last); at >= 0; at--) {
    const row = session.row(order[at]!).value;
    if (row === undefined) continue;
    if (row.turnId === turnId) rows.unshift(row);
    else if (row.turnId !== null && row.kind !== "call") return { rows, before: endOf(session, row) };
  }
  return { rows: session.head.older.value === null && rows.length > 0 ? rows : null, before: 0 };
}

function endOf(session: SessionStore, row: Row): number {
  if (row.kind !== "step") return row.at;
  const ends = row.calls.map((id) => session.call(id).value?.finishedAt ?? 0);
  return Math.max(row.repliedAt ?? row.at, ...ends);
}

/** Of those that acted; null while one of them is not over, or is still read. */
function timedCalls(session: SessionStore, row: StepRow): readonly TimedCall[] | null {
  const calls: TimedCall[] = [];
  for (const id of row.calls) {
    const call = session.call(id).value;
    if (call === undefined || !call.started) continue;
    if (call.finishedAt === null) return null;
    const blob = call.nested?.blob ?? null;
    const nested = blob === null ? null : storedNested(session.id, blob).value;
    if (blob !== null && nested === null) return null;
    calls.push({
      finishedAt: call.finishedAt,
      duration: call.duration ?? 0,
      isDone: call.outcome === "completed",
      nested,
    });
  }
  return calls;
}
