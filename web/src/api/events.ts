/**
 * Everything that a session says, as it comes over the wire.
 *
 * Types only, and only the fields that the page reads. A type that is missing here is skipped.
 */

export type Outcome = "completed" | "failed" | "denied" | "cancelled" | "unknown";
export type TurnOutcome = "completed" | "cancelled" | "failed" | "parked";
export type Mode = "queue" | "steer" | "interrupt";
export type Decision = "once" | "session" | "always" | "deny";
export type ApprovalMode = "ask" | "auto" | "never";
export type Risk = "none" | "low" | "high";

export interface Usage {
  input_tokens: number;
  output_tokens: number;
  cached_tokens: number;
  reasoning_tokens: number;
}

export interface ContextSize {
  window: number | null;
  compact_at: number | null;
  last_prompt_tokens: number | null;
}

export interface Attachment {
  type: "image" | "file";
  blob: string;
  media_type: string;
  name?: string;
}

export type Part = { type: "text"; text: string } | { type: "json"; value: unknown } | Attachment;

export interface ToolCall {
  call_id: string;
  tool: string;
  arguments?: string;
}

export interface TurnError {
  kind: string;
  message: string;
  hint: string;
}

export interface RunningCall {
  call_id: string;
  tool: string;
  output?: string;
  done?: number | null;
  total?: number | null;
  note?: string;
  nested?: RunningNested | null;
}

export interface RunningNested {
  began?: number;
  ended?: number;
  completed?: number;
  /** Each of them, as long as they are few; then those that run and were named by themselves. */
  calls?: ShownNested[];
  /** All of them, added up. */
  tools?: ShownTool[];
}

export interface ShownTool {
  tool: string;
  began: number;
  ended: Partial<Record<Outcome, number>>;
  /** When the first was told of, and the last, in seconds since the container's own start. */
  first: number;
  last: number;
}

export interface ShownNested {
  call_id: string;
  tool: string;
  /** Since the container's own start, in seconds. */
  start: number;
  preview?: string;
  outcome?: Outcome | null;
  duration?: number | null;
}

export interface NestedProgress {
  tool: string;
  preview?: string;
  outcome?: Outcome | null;
  /** Of one that is named: how long it has run by now. */
  duration?: number | null;
  /** More than one: alike ones in one event, which names their container. 0: it was counted before. */
  count?: number;
}

export interface Settings {
  model: string;
  profile: string;
  place: string;
  workspace: string;
  tools: string[];
  effort: string | null;
  personality: string | null;
  title: string;
  pinned: boolean;
  archived: boolean;
  approvals: ApprovalMode | null;
  read_only: boolean;
}

interface Said<T extends string> {
  type: T;
  session_id: string;
  at: number;
}

interface Fact<T extends string> extends Said<T> {
  seq: number;
}

interface InTurn<T extends string> extends Fact<T> {
  turn_id: string;
}

interface AtWork<T extends string> extends Fact<T> {
  turn_id: string | null;
}

export interface MessageAccepted extends InTurn<"message.accepted"> {
  message_id: string;
  mode: Mode;
  text: string;
  workspace: string;
  attachments?: Attachment[];
  wait?: boolean;
}

export interface MessageChanged extends Fact<"message.changed"> {
  message_id: string;
  turn_id?: string;
  mode?: Mode;
  text?: string;
  workspace?: string;
  attachments?: Attachment[];
  before?: string | null;
}

export interface MessageDelivered extends InTurn<"message.delivered"> {
  message_id: string;
}

export interface TurnFinished extends InTurn<"turn.finished"> {
  outcome: TurnOutcome;
  usage: Usage;
  cost: number | null;
  reason?: string | null;
  started?: boolean;
  left_over?: string[];
  error?: TurnError | null;
}

export interface StepReplied extends InTurn<"step.replied"> {
  step_id: string;
  text: string;
  usage: Usage | null;
  cost: number | null;
  context: ContextSize;
  stop_reason: string | null;
  reasoning?: string;
  calls?: ToolCall[];
  cut?: boolean;
}

export interface CallStarted extends AtWork<"call.started"> {
  call_id: string;
  step_id: string | null;
  by: string;
  tool: string;
  arguments: string;
  preview: string;
  arguments_blob?: string | null;
}

export interface CallFinished extends AtWork<"call.finished"> {
  call_id: string;
  tool: string;
  outcome: Outcome;
  reason: string | null;
  started: boolean;
  result: Part[];
  duration: number;
  left_over?: string[];
  nested?: { calls: number; completed: number; blob: string } | null;
}

export interface ApprovalAsked extends AtWork<"approval.asked"> {
  approval_id: string;
  call_id: string;
  what: string;
  why: string;
  risk: Risk;
  expires: number | null;
  tool?: string;
  patterns?: string[] | null;
  needs?: { network?: boolean; reads?: string[]; writes?: string[] };
  /** What consent that lasts can cover, the narrowest first; none if it can cover only this call. */
  offers?: Offer[];
}

export type Reach = "exact" | "folder" | "everywhere";

export interface Offer {
  reach: Reach;
  /** In words what it covers. */
  says: string;
  /** The folder that it holds in; null: every one. */
  workspace?: string | null;
}

export interface QuestionAsked extends AtWork<"question.asked"> {
  question_id: string;
  call_id: string;
  text: string;
  expires: number | null;
  choices?: string[];
}

export interface ContextCompacted extends AtWork<"context.compacted"> {
  summary: string;
  up_to: number;
  tokens_before: number;
  tokens_after: number;
}

export type LoggedEvent =
  | (Fact<"session.opened"> & Settings)
  | (Fact<"session.changed"> & { by: string } & Partial<Settings>)
  | MessageAccepted
  | MessageChanged
  | (Fact<"message.withdrawn"> & { message_id: string })
  | MessageDelivered
  | (InTurn<"message.expired"> & { message_id: string; cause: string })
  | (Fact<"prompt.changed"> & { part: string })
  | (InTurn<"turn.started"> & { message_ids: string[]; warnings?: string[] })
  | (InTurn<"turn.resumed"> & { attempt: number })
  | (InTurn<"turn.cancelling"> & { reason: string; by: string })
  | (Fact<"turn.undone"> & { turn_id: string; by: string })
  | TurnFinished
  | (InTurn<"step.started"> & { step_id: string; model: string; effort?: string | null })
  | (InTurn<"step.abandoned"> & { step_id: string; cause: string })
  | StepReplied
  | CallStarted
  | CallFinished
  | (Fact<"call.settled"> & { call_id: string; duration: number })
  | (AtWork<"files.changed"> & { call_id: string | null; path: string })
  | ApprovalAsked
  | (AtWork<"approval.answered"> & { approval_id: string; decision: Decision })
  | (AtWork<"approval.expired"> & { approval_id: string; cause: string })
  | QuestionAsked
  | (AtWork<"question.answered"> & { question_id: string; answer: string })
  | (AtWork<"question.expired"> & { question_id: string; cause: string })
  | (InTurn<"model.retried"> & { step_id: string; cause: string; message: string; delay: number })
  | (InTurn<"model.switched"> & { step_id: string; cause: string; from: string; to: string })
  | ContextCompacted
  | (Fact<"usage.recorded"> & { usage: Usage | null; cost: number | null });

export interface StepSnapshot extends Said<"step.snapshot"> {
  after: number;
  turn_id: string;
  step_id: string;
  text?: string;
  reasoning?: string;
  calls?: ToolCall[];
}

export interface CallsSnapshot extends Said<"calls.snapshot"> {
  after: number;
  running: RunningCall[];
}

export interface CallProgress extends Said<"call.progress"> {
  call_id: string;
  done?: number | null;
  total?: number | null;
  note?: string;
  parent?: string | null;
  nested?: NestedProgress | null;
}

export interface CallOutput extends Said<"call.output"> {
  call_id: string;
  stream: "stdout" | "stderr";
  text: string;
  parent?: string | null;
}

/** A summary is being written of what was said so far; over: it ended, in whatever way. */
export interface ContextCompacting extends Said<"context.compacting"> {
  turn_id?: string | null;
  tokens_before: number;
  over?: boolean;
}

export type LiveEvent =
  | (Said<"text.delta"> & { step_id: string; text: string })
  | (Said<"reasoning.delta"> & { step_id: string; text: string })
  | (Said<"arguments.delta"> & { step_id: string; call_id: string; tool: string; text: string })
  | (Said<"step.reset"> & { step_id: string })
  | CallOutput
  | CallProgress
  | StepSnapshot
  | CallsSnapshot
  | ContextCompacting
  | Said<"resync">;

export type SessionEvent = LoggedEvent | LiveEvent;

export function isFact(event: SessionEvent): event is LoggedEvent {
  return "seq" in event;
}
