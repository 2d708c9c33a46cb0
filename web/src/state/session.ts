/** The state of one session, and how it begins: from a view and the last page of its transcript. */

import type { ApprovalAsked, ContextSize, LoggedEvent, QuestionAsked, Settings, Usage } from "../api/events";
import type { MessagePage, View } from "../api/shapes";
import { askCall, finishCall, startCall } from "./calls";
import type { Waiting } from "./queue";
import type { Note, Row, Table } from "./rows";
import { dropRow, emptyTable, putRow } from "./rows";

export interface OpenTurn {
  readonly turnId: string;
  readonly cancelling: boolean;
  readonly startedAt: number | null;
}

export interface SessionState extends Table, Waiting {
  readonly sessionId: string;
  /** The last fact that is in here. */
  seq: number;
  settings: Settings;
  turn: OpenTurn | null;
  approvals: readonly ApprovalAsked[];
  questions: readonly QuestionAsked[];
  context: ContextSize | null;
  usage: Usage;
  cost: number | null;
  /** Rows before this seq are not here yet; null: there are none. */
  older: number | null;
}

export function fromView(view: View, page: MessagePage): SessionState {
  const turnId = view.turn?.turn_id ?? null;
  const { cost, ...usage } = view.usage;
  const state: SessionState = {
    ...emptyTable(),
    sessionId: view.summary.session_id,
    seq: view.seq,
    settings: view.settings,
    turn: view.turn && { turnId: view.turn.turn_id, cancelling: view.turn.cancelling, startedAt: null },
    queue: view.queue.filter((each) => each.turn_id !== turnId),
    steers: view.queue.filter((each) => each.turn_id === turnId),
    approvals: view.approvals,
    questions: view.questions,
    context: view.context,
    usage,
    cost,
    older: null,
  };
  prepend(state, page);
  for (const started of view.calls) startCall(state, started);
  const asking = new Set([...view.approvals, ...view.questions].map((each) => each.call_id));
  for (const [id, call] of state.calls) if (asking.has(id)) state.calls.set(id, { ...call, asking: true });
  return state;
}

/** An older page; what came after the view is left to the events. */
export function prepend(state: SessionState, page: MessagePage): void {
  const before: Table = { order: [], rows: state.rows, calls: state.calls, touched: state.touched };
  for (const { seq, event } of page.rows) {
    if (seq <= state.seq) addFact(before, event, seq);
  }
  state.order = [...before.order, ...state.order];
  state.older = page.next;
}

/** Forgets the oldest rows past this number; they can be asked for again. */
export function trim(state: SessionState, keep: number): void {
  if (state.order.length <= keep) return;
  const gone = state.order.slice(0, -keep);
  for (const key of gone) dropRow(state, key);
  state.order = state.order.slice(-keep);
  const first = state.rows.get(state.order[0] ?? "");
  if (first !== undefined) state.older = first.seq;
}

/** A row of the transcript, from the log or as it happens; false if the event is none. */
export function addFact(table: Table, event: LoggedEvent, seq: number): boolean {
  switch (event.type) {
    case "message.accepted":
      putRow(table, {
        kind: "message",
        key: event.message_id,
        seq,
        turnId: event.turn_id,
        at: event.at,
        text: event.text,
        mode: event.mode,
        attachments: event.attachments ?? [],
      });
      return true;
    case "step.replied":
      addReply(table, event, seq);
      return true;
    case "call.started":
      startCall(table, event);
      return true;
    case "call.finished":
      finishCall(table, event);
      return true;
    case "context.compacted":
      addNote(table, event, {
        what: "compacted",
        summary: event.summary,
        before: event.tokens_before,
        after: event.tokens_after,
      });
      return true;
    case "turn.finished":
      if (event.outcome !== "completed") putRow(table, endRow(event, seq));
      return true;
    default:
      return false;
  }
}

function addReply(table: Table, event: LoggedEvent & { type: "step.replied" }, seq: number): void {
  const calls = event.calls ?? [];
  const ids = calls.map((call) => call.call_id);
  const known = table.rows.get(event.step_id);
  if (known?.kind === "step") {
    for (const id of known.calls) if (!ids.includes(id)) forgetCall(table, id);
  }
  for (const call of calls) askCall(table, call.call_id, call.tool, call.arguments ?? "{}");
  putRow(table, {
    kind: "step",
    key: event.step_id,
    seq,
    turnId: event.turn_id,
    at: known?.at ?? event.at,
    live: false,
    repliedAt: event.at,
    text: event.text,
    reasoning: event.reasoning ?? "",
    calls: ids,
    cut: event.cut ?? false,
    usage: event.usage,
    cost: event.cost,
  });
}

export function forgetCall(table: Table, id: string): void {
  table.calls.delete(id);
  table.touched.calls.add(id);
}

function endRow(event: LoggedEvent & { type: "turn.finished" }, seq: number): Row {
  return {
    kind: "end",
    key: `end:${event.turn_id}`,
    seq,
    turnId: event.turn_id,
    at: event.at,
    outcome: event.outcome,
    reason: event.reason ?? null,
    started: event.started ?? true,
    leftOver: event.left_over?.length ?? 0,
    error: event.error ?? null,
  };
}

export function addNote(table: Table, event: { seq: number; at: number; turn_id?: string | null }, note: Note): void {
  const key = `note:${event.seq}`;
  putRow(table, { kind: "note", key, seq: event.seq, turnId: event.turn_id ?? null, at: event.at, note });
}
