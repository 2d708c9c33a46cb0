/** A turn's facts, and its transcript as it was after each of them. Pure. */

import type { LoggedEvent, QueuedMessage, Settings } from "../api/types";
import { apply } from "../session/reducer";
import type { ReplayedTurn } from "../session/replayed_turn";
import { emptyTable } from "../session/rows";
import type { SessionState } from "../session/session_state";

/** Where the turn begins among these facts; null: it does not begin here. */
export function beginIn(facts: readonly LoggedEvent[], turnId: string): number | null {
  const index = facts.findIndex((fact) => fact.type === "turn.started" && fact.turn_id === turnId);
  return index < 0 ? null : index;
}

/** The facts up to the turn's last one, and whether that is among them. */
export function upToEnd(
  facts: readonly LoggedEvent[],
  turnId: string,
): { facts: readonly LoggedEvent[]; ended: boolean } {
  const end = facts.findIndex((fact) => fact.type === "turn.finished" && fact.turn_id === turnId);
  return end < 0 ? { facts, ended: false } : { facts: facts.slice(0, end + 1), ended: true };
}

/** The transcript of one turn at any moment. A step forward folds one fact; a step back folds anew. */
export class Moments {
  private state: SessionState;
  private folded = 0;

  constructor(
    private readonly turn: ReplayedTurn,
    readonly facts: readonly LoggedEvent[],
  ) {
    this.state = this.beginning();
  }

  /** After the first `count` facts. */
  after(count: number): SessionState {
    if (count < this.folded) {
      this.state = this.beginning();
      this.folded = 0;
    }
    for (; this.folded < count; this.folded++) apply(this.state, this.facts[this.folded]!);
    return this.state;
  }

  private beginning(): SessionState {
    const { sessionId, turnId, message } = this.turn;
    const first: QueuedMessage = {
      message_id: message.key,
      turn_id: turnId,
      mode: message.mode,
      text: message.text,
      workspace: "",
      attachments: message.attachments,
      wait: false,
      at: message.at,
    };
    return {
      ...emptyTable(),
      sessionId,
      parent: null,
      seq: (this.facts[0]?.seq ?? 1) - 1,
      settings: {} as Settings,
      turn: null,
      queue: [first],
      steers: [],
      approvals: [],
      questions: [],
      context: null,
      compacting: null,
      usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0 },
      cost: 0,
      older: null,
      historyWindow: null,
    };
  }
}

export const SPEEDS = ["1", "4", "max"] as const;
export type Speed = (typeof SPEEDS)[number];

/** The longest wait for the next fact, at normal speed. */
const LONGEST_MS = 5_000;
const SHORTEST_MS = 30;

/** Milliseconds from one fact to the next, as long as it took, but nobody waits for a night. */
export function pauseBetween(fact: LoggedEvent, next: LoggedEvent, speed: Speed): number {
  if (speed === "max") return SHORTEST_MS;
  const took = Math.min((next.at - fact.at) * 1_000, LONGEST_MS);
  return Math.max(took / Number(speed), SHORTEST_MS);
}
