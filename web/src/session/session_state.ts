/** What the page knows of one session. Types only. */

import type { ApprovalAsked, ContextSize, ParentCall, QuestionAsked, Settings, Usage } from "../api/types";
import type { WaitingMessages } from "./message_queue";
import type { Table } from "./rows";

/** A part of the transcript in which no row is missing. */
export interface LoadedPart {
  order: readonly string[];
  /** Facts before this seq are not in it; null: there are none. */
  older: number | null;
}

export interface HistoryWindow extends LoadedPart {
  /** Facts after this seq are not in it. */
  newer: number;
}

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

export interface SessionState extends Table, LoadedPart, WaitingMessages {
  readonly sessionId: string;
  /** The call that this session was opened by, if it is a child agent's. */
  readonly parent: ParentCall | null;
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
  historyWindow: HistoryWindow | null;
}
