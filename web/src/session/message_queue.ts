/** What was said and not delivered yet. Pure; the same rules as the session's own. */

import type { MessageAccepted, MessageChanged, QueuedMessage } from "../api/types";

export interface WaitingMessages {
  /** Messages that wait for a turn of their own, in order. */
  queue: readonly QueuedMessage[];
  /** Messages that wait to join the turn under way. */
  steers: readonly QueuedMessage[];
}

export function acceptMessage(waiting: WaitingMessages, event: MessageAccepted, turnId: string | null): void {
  const message: QueuedMessage = {
    message_id: event.message_id,
    turn_id: event.turn_id,
    mode: event.mode,
    text: event.text,
    workspace: event.workspace,
    attachments: event.attachments ?? [],
    wait: event.wait ?? false,
    at: event.at,
  };
  if (turnId !== null && event.turn_id === turnId) waiting.steers = [...waiting.steers, message];
  else if (event.mode === "interrupt") waiting.queue = [message, ...waiting.queue];
  else waiting.queue = [...waiting.queue, message];
}

export function reviseMessage(waiting: WaitingMessages, event: MessageChanged): void {
  const { message_id, turn_id, mode, text, workspace, attachments, before } = event;
  const changes = { turn_id, mode, text, workspace, attachments };
  const revised = (message: QueuedMessage): QueuedMessage =>
    message.message_id === message_id ? { ...message, ...present(changes) } : message;
  waiting.queue = waiting.queue.map(revised);
  waiting.steers = waiting.steers.map(revised);
  if (before !== undefined) waiting.queue = placed(waiting.queue, message_id, before);
}

function present<T extends object>(changes: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  const entries = Object.entries(changes).filter(([, value]) => value !== undefined);
  return Object.fromEntries(entries) as { [K in keyof T]?: Exclude<T[K], undefined> };
}

function placed(queue: readonly QueuedMessage[], id: string, before: string | null): readonly QueuedMessage[] {
  const message = queue.find((message) => message.message_id === id);
  if (message === undefined) return queue;
  const others = queue.filter((other) => other !== message);
  const at = others.findIndex((other) => other.message_id === before);
  others.splice(at < 0 ? others.length : at, 0, message);
  return others;
}

/** Takes the message out, wherever it waits. */
export function takeMessage(waiting: WaitingMessages, messageId: string): QueuedMessage | null {
  const is = (message: QueuedMessage): boolean => message.message_id === messageId;
  const removed = waiting.queue.find(is) ?? waiting.steers.find(is) ?? null;
  if (removed !== null) {
    waiting.queue = waiting.queue.filter((message) => !is(message));
    waiting.steers = waiting.steers.filter((message) => !is(message));
  }
  return removed;
}

/** The turn is over: its undelivered steers come next, behind the text of an interrupt. */
export function releaseSteers(waiting: WaitingMessages): void {
  if (waiting.steers.length === 0) return;
  const leading = waiting.queue.filter((message) => message.mode === "interrupt");
  const rest = waiting.queue.filter((message) => message.mode !== "interrupt");
  waiting.queue = [...leading, ...waiting.steers, ...rest];
  waiting.steers = [];
}
