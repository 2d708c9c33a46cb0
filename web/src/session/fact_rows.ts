/** Which rows and calls a logged fact makes. Pure: it changes the table and nothing else. */

import type { LoggedEvent, MessageAccepted } from "../api/types";
import { finishCall, requestCall, startCall } from "./calls";
import { noteOf } from "./notes";
import { putRow, type Row, type Table } from "./rows";

/** What a fact is in the transcript, from the log or as it happens; most are nothing. */
export function addFact(table: Table, event: LoggedEvent, seq: number): void {
  switch (event.type) {
    case "message.accepted":
      return addMessage(table, event, seq);
    case "step.replied":
      return addReply(table, event, seq);
    case "call.started":
      return startCall(table, event);
    case "call.finished":
      return finishCall(table, event);
    case "turn.restored":
      return noteVariants(table, event.turn_id, event.variants ?? []);
    case "turn.finished":
      if (event.outcome !== "completed") putRow(table, endRow(event, seq));
      return;
    default:
      return addNote(table, event, seq);
  }
}

type SaidMessage = Pick<
  MessageAccepted,
  "message_id" | "turn_id" | "at" | "text" | "mode" | "attachments" | "variants"
>;

/** The answers at the place of this turn. The longest list is the newest: none is ever taken out. */
export function noteVariants(table: Table, turnId: string, variants: readonly string[]): void {
  if (variants.length <= (table.variants.get(turnId)?.length ?? 1)) return;
  table.variants.set(turnId, variants);
  for (const row of table.rows.values()) {
    if (row.kind === "message" && row.turnId === turnId) putRow(table, { ...row, variants });
  }
}

export function addMessage(table: Table, message: SaidMessage, seq: number): void {
  if (message.variants?.length) noteVariants(table, message.turn_id, [...message.variants, message.turn_id]);
  putRow(table, {
    kind: "message",
    key: message.message_id,
    seq,
    turnId: message.turn_id,
    at: message.at,
    text: message.text,
    mode: message.mode,
    attachments: message.attachments ?? [],
    variants: table.variants.get(message.turn_id) ?? [],
  });
}

function addReply(table: Table, event: LoggedEvent & { type: "step.replied" }, seq: number): void {
  const calls = event.calls ?? [];
  const ids = calls.map((call) => call.call_id);
  const row = table.rows.get(event.step_id);
  if (row?.kind === "step") {
    for (const id of row.calls) if (!ids.includes(id)) forgetCall(table, id);
  }
  for (const call of calls) requestCall(table, call.call_id, call.tool, call.arguments ?? "{}");
  putRow(table, {
    kind: "step",
    key: event.step_id,
    seq,
    turnId: event.turn_id,
    at: row?.at ?? event.at,
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
