/** The state of one session, and how it begins: from a view and the last page of its transcript. */

import type { ApprovalAsked, ContextSize, LoggedEvent, QuestionAsked, Settings, Usage } from "../api/events";
import type { MessagePage, View } from "../api/shapes";
import { askCall, finishCall, startCall } from "./calls";
import type { Waiting } from "./queue";
import { noteOf } from "./notes";
import type { Row, Table } from "./rows";
import { emptyTable, putRow } from "./rows";
import { growUp, type Part, type Stretch } from "./stretch";

export interface OpenTurn {
  readonly turnId: string;
  readonly cancelling: boolean;
  readonly startedAt: number | null;
}

export interface Compacting {
  /** Tokens that the model would be sent without it. */
  readonly before: number;
  /** When it began; whoever comes late is told the same. */
  readonly at: number;
}

export interface SessionState extends Table, Part, Waiting {
  readonly sessionId: string;
  /** The last fact that is in here. */
  seq: number;
  settings: Settings;
  turn: OpenTurn | null;
  approvals: readonly ApprovalAsked[];
  questions: readonly QuestionAsked[];
  context: ContextSize | null;
  /** What is being summed up right now. */
  compacting: Compacting | null;
  usage: Usage;
  cost: number | null;
  /** What is read, if that is not the end. */
  stretch: Stretch | null;
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
    compacting: null,
    usage,
    cost,
    older: null,
    stretch: null,
  };
  growUp(state, page);
  for (const started of view.calls) startCall(state, started);
  const asking = new Set([...view.approvals, ...view.questions].map((each) => each.call_id));
  for (const [id, call] of state.calls) if (asking.has(id)) state.calls.set(id, { ...call, asking: true });
  return state;
}

/** What a fact is in the transcript, from the log or as it happens; most are nothing. */
export function addFact(table: Table, event: LoggedEvent, seq: number): void {
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
      return;
    case "step.replied":
      return addReply(table, event, seq);
    case "call.started":
      return startCall(table, event);
    case "call.finished":
      return finishCall(table, event);
    case "turn.finished":
      if (event.outcome !== "completed") putRow(table, endRow(event, seq));
      return;
    default:
      return addNote(table, event, seq);
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

function addNote(table: Table, event: LoggedEvent, seq: number): void {
  const note = noteOf(event);
  if (note === null) return;
  const turnId = "turn_id" in event ? (event.turn_id ?? null) : null;
  putRow(table, { kind: "note", key: `note:${seq}`, seq, turnId, at: event.at, note });
}
