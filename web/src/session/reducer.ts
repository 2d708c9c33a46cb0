/**
 * A session's events to its state. Pure: it reads events in order and knows nothing of the
 * network, the screen or the time, so the same events always give the same state.
 */

import type { LiveEvent, LoggedEvent, SessionEvent, Settings, StepSnapshot, Usage } from "../api/types";
import { addOutput, addProgress, setAsking, settleCall, showRunning, writeArguments } from "./calls";
import { addFact, addMessage, forgetCall, noteVariants } from "./fact_rows";
import { removeEverywhere } from "./history_window";
import { acceptMessage, releaseSteers, reviseMessage, takeMessage } from "./message_queue";
import type { StepRow } from "./rows";
import { putRow, removeRows } from "./rows";
import type { SessionState } from "./session_state";

/** known: it was here before. gap: facts before it are missing, so it is not taken. */
export type Applied = "applied" | "known" | "gap";

function isFact(event: SessionEvent): event is LoggedEvent {
  return "seq" in event;
}

export function apply(state: SessionState, event: SessionEvent): Applied {
  if (!isFact(event)) return applyLive(state, event);
  if (event.seq <= state.seq) return "known";
  if (event.seq > state.seq + 1) return "gap";
  state.seq = event.seq;
  applyFact(state, event);
  return "applied";
}

function applyFact(state: SessionState, event: LoggedEvent): void {
  switch (event.type) {
    case "session.opened":
    case "session.changed":
      return changeSession(state, event);
    case "message.accepted":
    case "message.changed":
    case "message.withdrawn":
    case "message.delivered":
    case "message.expired":
      return applyMessage(state, event);
    case "approval.asked":
      state.approvals = [...state.approvals, event];
      return setAsking(state, event.call_id, true);
    case "approval.answered":
    case "approval.expired":
      return endApproval(state, event.approval_id);
    case "question.asked":
      state.questions = [...state.questions, event];
      return setAsking(state, event.call_id, true);
    case "question.answered":
    case "question.expired":
      return endQuestion(state, event.question_id);
    case "usage.recorded":
      return spend(state, event.usage, event.cost);
    default:
      return applyTurn(state, event);
  }
}

function applyTurn(state: SessionState, event: LoggedEvent): void {
  switch (event.type) {
    case "turn.started":
      state.turn = { turnId: event.turn_id, cancelling: false, startedAt: event.at };
      return addFact(state, event, event.seq);
    case "turn.cancelling":
      if (state.turn?.turnId === event.turn_id) state.turn = { ...state.turn, cancelling: true };
      return;
    case "turn.undone":
      if (state.plan?.turnId === event.turn_id || state.plan?.turnId === null) state.plan = null;
      return removeEverywhere(state, (row) => row.turnId === event.turn_id);
    case "turn.finished":
      if (state.turn?.turnId === event.turn_id) {
        state.turn = null;
        releaseSteers(state);
      }
      removeRows(state, (row) => row.kind === "step" && row.live && row.turnId === event.turn_id);
      return addFact(state, event, event.seq);
    default:
      return applyStep(state, event);
  }
}

function applyStep(state: SessionState, event: LoggedEvent): void {
  switch (event.type) {
    case "step.started":
      return putRow(state, liveStep(event.step_id, event.seq, event.turn_id, event.at));
    case "step.abandoned":
      return removeRows(state, (row) => row.key === event.step_id);
    case "step.replied":
      addFact(state, event, event.seq);
      state.context = event.context;
      return spend(state, event.usage, event.cost);
    case "call.settled":
      return settleCall(state, event.call_id);
    case "context.compacted":
      addFact(state, event, event.seq);
      state.compacting = null;
      if (state.context !== null) state.context = { ...state.context, last_prompt_tokens: event.tokens_after };
      return;
    default:
      addFact(state, event, event.seq);
  }
}

function applyMessage(state: SessionState, event: LoggedEvent): void {
  switch (event.type) {
    case "message.accepted":
      if (event.variants?.length) noteVariants(state, event.turn_id, [...event.variants, event.turn_id]);
      return acceptMessage(state, event, state.turn?.turnId ?? null);
    case "message.changed":
      return reviseMessage(state, event);
    case "message.withdrawn":
    case "message.expired":
      takeMessage(state, event.message_id);
      return;
    case "message.delivered": {
      const message = takeMessage(state, event.message_id);
      if (message === null) return;
      const { seq, turn_id } = event;
      // When it was said, as the transcript tells it too.
      const at = message.at ?? event.at;
      addMessage(state, { ...message, at, turn_id }, seq);
    }
  }
}

function changeSession(state: SessionState, event: LoggedEvent): void {
  const changes: Partial<Settings> = {};
  for (const name of Object.keys(state.settings)) {
    if (name in event) Object.assign(changes, { [name]: event[name as keyof LoggedEvent] });
  }
  state.settings = { ...state.settings, ...changes };
  addFact(state, event, event.seq);
}

function endApproval(state: SessionState, id: string): void {
  const ended = state.approvals.find((approval) => approval.approval_id === id);
  if (ended === undefined) return;
  state.approvals = state.approvals.filter((approval) => approval !== ended);
  setAsking(state, ended.call_id, false);
}

function endQuestion(state: SessionState, id: string): void {
  const ended = state.questions.find((question) => question.question_id === id);
  if (ended === undefined) return;
  state.questions = state.questions.filter((question) => question !== ended);
  setAsking(state, ended.call_id, false);
}

/** A cost that is not known makes the sum unknown. */
function spend(state: SessionState, usage: Usage | null, cost: number | null): void {
  const sum = state.usage;
  if (usage !== null) {
    state.usage = {
      input_tokens: sum.input_tokens + usage.input_tokens,
      output_tokens: sum.output_tokens + usage.output_tokens,
      cached_tokens: sum.cached_tokens + usage.cached_tokens,
      reasoning_tokens: sum.reasoning_tokens + usage.reasoning_tokens,
    };
  }
  state.cost = state.cost === null || cost === null ? null : state.cost + cost;
}

// -- what passes by

function applyLive(state: SessionState, event: LiveEvent): Applied {
  switch (event.type) {
    case "text.delta":
      return changeLive(state, event.step_id, (row) => ({ ...row, text: row.text + event.text }));
    case "reasoning.delta":
      return changeLive(state, event.step_id, (row) => ({ ...row, reasoning: row.reasoning + event.text }));
    case "arguments.delta":
      return changeLive(state, event.step_id, (row) => {
        writeArguments(state, event.call_id, event.tool, event.text);
        return row.calls.includes(event.call_id) ? row : { ...row, calls: [...row.calls, event.call_id] };
      });
    case "step.reset":
      return changeLive(state, event.step_id, (row) => emptied(state, row));
    case "call.output":
      addOutput(state, event);
      return "applied";
    case "call.progress":
      addProgress(state, event);
      return "applied";
    case "step.snapshot":
      return applySnapshot(state, event);
    case "calls.snapshot":
      if (event.after > state.seq) return "gap";
      for (const running of event.running) showRunning(state, running);
      return "applied";
    case "context.compacting":
      state.compacting = event.over ? null : { before: event.tokens_before, at: event.at };
      return "applied";
    case "resync":
      return resync(state);
    default:
      return "known";
  }
}

/** A delta of a step that is unknown or settled says nothing new: the reply has the whole. */
function changeLive(state: SessionState, stepId: string, next: (row: StepRow) => StepRow): Applied {
  const row = state.rows.get(stepId);
  if (row?.kind !== "step" || !row.live) return "known";
  const changed = next(row);
  if (changed !== row) putRow(state, changed);
  return "applied";
}

function emptied(state: SessionState, row: StepRow): StepRow {
  for (const id of row.calls) forgetCall(state, id);
  return { ...row, text: "", reasoning: "", calls: [] };
}

/** No connection: what leaves no fact behind may end meanwhile, and is told anew if it has not. */
export function dropUnlogged(state: SessionState): void {
  state.compacting = null;
}

function resync(state: SessionState): Applied {
  dropUnlogged(state);
  for (const key of state.order.slice(-8)) {
    const row = state.rows.get(key);
    if (row?.kind === "step" && row.live) putRow(state, emptied(state, row));
  }
  return "applied";
}

function applySnapshot(state: SessionState, event: StepSnapshot): Applied {
  if (event.after > state.seq) return "gap";
  const existing = state.rows.get(event.step_id);
  if (existing === undefined) {
    // The step began before the view was made, and nothing of its reply is logged yet.
    if (state.turn?.turnId !== event.turn_id) return "known";
    putRow(state, liveStep(event.step_id, event.after, event.turn_id, event.at));
  }
  const applied = changeLive(state, event.step_id, (row) => {
    const bare = emptied(state, row);
    const calls = event.calls ?? [];
    for (const call of calls) {
      // Nothing yet is told as an empty object, and the deltas that follow begin it.
      writeArguments(state, call.call_id, call.tool, call.arguments === "{}" ? "" : (call.arguments ?? ""));
    }
    return {
      ...bare,
      text: event.text ?? "",
      reasoning: event.reasoning ?? "",
      calls: calls.map((call) => call.call_id),
    };
  });
  return applied;
}

function liveStep(key: string, seq: number, turnId: string, at: number): StepRow {
  const nothing = { text: "", reasoning: "", calls: [], cut: false, usage: null, cost: null };
  return { kind: "step", key, seq, turnId, at, live: true, repliedAt: null, ...nothing };
}
