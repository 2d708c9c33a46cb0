/**
 * A window of the transcript apart from its end, with a gap of rows between that are not here.
 *
 * The state's own order is the end, which events go on changing. While a window is open it is
 * what is read: it grows both ways, and when it meets the end the two are one again. Rows and
 * calls are in the same table, whichever part they stand in. Pure.
 */

import type { MessagePage } from "../api/types";
import { addFact } from "./fact_rows";
import type { Call, Row, Table } from "./rows";
import { removeRows } from "./rows";
import type { HistoryWindow, LoadedPart, SessionState } from "./session_state";

/** What is read now. */
export function shownPart(state: SessionState): LoadedPart {
  return state.historyWindow ?? state;
}

/** An older page of what is read; what came after the view is left to the events. */
export function addOlder(state: SessionState, page: MessagePage): void {
  const part = shownPart(state);
  part.order = [...rowsOf(state, page.rows), ...part.order];
  part.older = page.next;
}

/** A newer page of the window; it may be the one that meets the end. */
export function addNewer(state: SessionState, page: MessagePage): void {
  const { historyWindow } = state;
  if (historyWindow === null) return;
  const end = state.older ?? 0;
  const between = page.rows.filter(({ seq }) => seq < end);
  historyWindow.order = [...historyWindow.order, ...rowsOf(state, between)];
  if (page.next !== null && between.length === page.rows.length) historyWindow.newer = page.next;
  else meet(state);
}

/** Reads from here on what is around a place: up to it, and after it. */
export function openWindow(state: SessionState, seq: number, before: MessagePage, after: MessagePage): void {
  closeWindow(state);
  state.historyWindow = { order: [], older: null, newer: seq };
  addOlder(state, before);
  addNewer(state, after);
}

/** Back to the end; the window can be asked for again. */
export function closeWindow(state: SessionState): void {
  const { historyWindow } = state;
  if (historyWindow === null) return;
  state.historyWindow = null;
  forget(state, historyWindow.order);
}

function meet(state: SessionState): void {
  const { historyWindow } = state;
  if (historyWindow === null) return;
  state.order = [...historyWindow.order, ...state.order];
  state.older = historyWindow.older;
  state.historyWindow = null;
}

function rowsOf(state: SessionState, rows: MessagePage["rows"]): readonly string[] {
  const { calls, touched, plan, variants } = state;
  const table: Table = { order: [], rows: state.rows, calls, touched, plan, variants };
  for (const { seq, event } of rows) if (seq <= state.seq) addFact(table, event, seq);
  state.plan = table.plan;
  return table.order;
}

/** Whether all that there is of this fact is in this part. */
export function covers(
  { older, newer = Number.POSITIVE_INFINITY }: LoadedPart & Partial<HistoryWindow>,
  seq: number,
): boolean {
  return (older === null || seq >= older) && seq <= newer;
}

/** The row that this fact is a part of: the last one that is not after it. */
export function rowAt(state: SessionState, seq: number): string | null {
  const part = shownPart(state);
  if (!covers(part, seq)) return null;
  let last: Row | null = null;
  for (const key of part.order) {
    const row = state.rows.get(key);
    if (row !== undefined && row.seq <= seq && (last === null || row.seq >= last.seq)) last = row;
  }
  if (last === null && part.older === null) return part.order[0] ?? null;
  return last?.key ?? null;
}

/** Removes rows wherever they stand. */
export function removeEverywhere(state: SessionState, gone: (row: Row) => boolean): void {
  removeRows(state, gone);
  const { historyWindow } = state;
  if (historyWindow === null) return;
  const { rows, calls, touched, plan, variants } = state;
  const table: Table = { order: historyWindow.order, rows, calls, touched, plan, variants };
  removeRows(table, gone);
  historyWindow.order = table.order;
}

// -- memory

export interface Bounds {
  /** More rows than this are too many. */
  readonly most: number;
  /** So many stay where the reader is. */
  readonly keep: number;
  /** So many stay at the end, while the reader is elsewhere. */
  readonly end: number;
}

/** Forgets rows far from the reader, who is at this row, or at the end. They can be asked for again. */
export function limitRows(state: SessionState, reader: string | null, { most, keep, end }: Bounds): void {
  if (state.historyWindow !== null) {
    if (state.order.length > end * 2) trim(state, end);
    const { order } = state.historyWindow;
    if (order.length > most) keepAround(state, state.historyWindow, order.indexOf(reader ?? ""), keep);
    return;
  }
  // Whoever follows the end reads nothing else: then it is as long as it needs to be, and no longer.
  if (state.order.length <= (reader === null ? keep + end : most)) return;
  const at = reader === null ? -1 : state.order.indexOf(reader);
  if (at < 0) return trim(state, keep);
  // So near to the end, a gap would not be worth it.
  if (at + keep > state.order.length - end) return trim(state, state.order.length - Math.max(0, at - keep / 2));
  const rest = state.order.slice(-end);
  const order = state.order.slice(0, -end);
  const historyWindow: HistoryWindow = { order, older: state.older, newer: seqOf(state, order.at(-1)) ?? 0 };
  state.order = rest;
  state.older = seqOf(state, rest[0]);
  state.historyWindow = historyWindow;
  keepAround(state, historyWindow, at, keep);
}

/** Forgets the oldest rows of the end past this number. */
export function trim(state: SessionState, keep: number): void {
  const gone = state.order.slice(0, Math.max(0, state.order.length - keep));
  if (gone.length === 0) return;
  state.order = state.order.slice(gone.length);
  state.older = seqOf(state, state.order[0]);
  forget(state, gone);
}

function keepAround(state: SessionState, historyWindow: HistoryWindow, at: number, keep: number): void {
  if (at < 0) return;
  const { order } = historyWindow;
  const from = Math.max(0, at - keep / 2);
  const to = from + keep;
  historyWindow.order = order.slice(from, to);
  if (from > 0) historyWindow.older = seqOf(state, historyWindow.order[0]);
  if (to < order.length) historyWindow.newer = seqOf(state, historyWindow.order.at(-1)) ?? historyWindow.newer;
  forget(state, [...order.slice(0, from), ...order.slice(to)]);
}

function seqOf(state: SessionState, key: string | undefined): number | null {
  return state.rows.get(key ?? "")?.seq ?? null;
}

/** Rows that stand in no part any more, and the calls that nobody will ask about. */
function forget(state: SessionState, keys: readonly string[]): void {
  for (const key of keys) {
    state.rows.delete(key);
    state.touched.rows.add(key);
  }
  const named = new Set<string>();
  for (const row of state.rows.values()) {
    if (row.kind === "step") for (const id of row.calls) named.add(id);
    else if (row.kind === "call") named.add(row.key);
  }
  for (const [id, call] of state.calls) {
    if (named.has(id) || isKnownToEnd(state, call)) continue;
    state.calls.delete(id);
    state.touched.calls.add(id);
  }
}

/** Its row may come back with an older page, and its end stands in what is here and is not read again. */
function isKnownToEnd(state: SessionState, { finishedSeq: seq }: Call): boolean {
  return seq !== null && (covers(state, seq) || (state.historyWindow !== null && covers(state.historyWindow, seq)));
}
