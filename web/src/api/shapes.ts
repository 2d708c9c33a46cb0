/** What the API answers besides events. Types only. */

import type {
  ApprovalAsked,
  ApprovalMode,
  Attachment,
  CallStarted,
  ContextSize,
  LoggedEvent,
  Mode,
  Outcome,
  QuestionAsked,
  Settings,
  Usage,
} from "./events";

export type SessionActivity = "idle" | "running" | "waiting" | "damaged";

export interface Summary {
  session_id: string;
  title: string;
  state: SessionActivity;
  model: string;
  workspace: string;
  pinned: boolean;
  archived: boolean;
  failed: boolean;
  last_seq: number;
  created_at: number;
  changed_at: number;
  position: number;
}

export interface QueuedMessage {
  message_id: string;
  turn_id: string;
  mode: Mode;
  text: string;
  workspace: string;
  attachments?: Attachment[];
  wait?: boolean;
  /** When it was said; a view does not tell. */
  at?: number;
}

export interface Upload {
  /** The hash of its bytes, which also names the blob that they become. */
  upload_id: string;
  name: string;
  media_type: string;
  size: number;
}

export interface View {
  summary: Summary;
  seq: number;
  settings: Settings;
  turn: { turn_id: string; cancelling: boolean } | null;
  queue: QueuedMessage[];
  approvals: ApprovalAsked[];
  questions: QuestionAsked[];
  calls: CallStarted[];
  context: ContextSize | null;
  usage: Usage & { cost: number | null };
  draft: { text: string; attachments?: Attachment[] };
}

export interface MessagePage {
  rows: { seq: number; event: LoggedEvent }[];
  next: number | null;
  /** The last fact of the log when the page was read; a server may not say. */
  seq?: number;
}

/** Where a page of the transcript ends, or begins; without either it is the last one. */
export type PageEdge = { before: number } | { after: number } | Record<string, never>;

export interface SessionPage {
  sessions: Summary[];
  next: number | null;
}

export interface Hit {
  session: Summary;
  seq: number;
  turn_id: string | null;
  kind: "message" | "reply" | "call";
  snippet: { text: string; found: boolean }[];
  at: number;
}

export interface Models {
  default: string | null;
  models: string[];
}

export interface Profiles {
  profiles: { name: string; personalities: string[]; model: string | null }[];
  workspace: string;
  workspaces: string[];
}

export interface Tools {
  tools: { name: string; description: string; toolset: string }[];
  toolsets: string[];
}

export interface UsageRow extends Usage {
  session_id: string;
  model: string;
  cost: number | null;
}

/** What an answer with “Always” allows. */
export interface ApprovalRule {
  rule_id: string;
  /** In words all that it covers. */
  says: string;
  /** Null: nobody knows; rules of older versions do not tell. */
  made_at: number | null;
}

export interface ApprovalRules {
  rules: ApprovalRule[];
  configured: { verdict: "allow" | "ask" | "deny"; says: string; tool: string; pattern: string }[];
}

export interface Setup {
  configured: boolean;
  model: string | null;
  /** The model of the tour, which needs no key. */
  tour: string;
}

export interface FoundServer {
  name: string;
  base_url: string;
  models: string[];
}

export interface NewProvider {
  name: string;
  base_url: string;
  api_key?: string;
  model?: string;
}

/** The calls of a container: those that are listed, and what the others add up to. */
export interface NestedCalls {
  calls?: { call_id: string; tool: string; start: number; duration: number; outcome: Outcome; preview?: string }[];
  sums?: {
    tool: string;
    calls: number;
    duration: number;
    completed: number;
    ended?: Partial<Record<Outcome, number>>;
  }[];
}

export interface Entry {
  name: string;
  kind: "folder" | "file" | "link" | "other";
  size: number | null;
}

export type Shown =
  | { kind: "folder"; path: string; entries: Entry[]; truncated?: boolean }
  | { kind: "file"; path: string; size: number; text: string | null; media_type: string; truncated: boolean };

export interface FileChanges {
  /** All that was changed, against what is there now. */
  diff: string;
  changes: { seq: number; path: string; call_id: string | null; turn_id: string | null; at: number }[];
}

export interface ModelContext {
  parts: { part: string; text: string }[];
  tools: string[];
  context: ContextSize | null;
  /** What the model reads in place of the earlier part, if that was summed up. */
  summary?: string | null;
  summary_tokens?: number | null;
}

export interface Outgoing {
  text: string;
  mode?: Mode;
  /** Of a steer: it stops nothing, and joins at the next boundary. */
  wait?: boolean;
  key: string;
  attachments?: Attaching[];
}

/** An upload that goes with a message, by the name and kind that it has there. */
export interface Attaching {
  upload_id: string;
  name?: string;
  media_type?: string;
}

export interface Opening {
  session_id: string;
  workspace?: string;
  model?: string;
  effort?: string | null;
  personality?: string | null;
  profile?: string;
  tools?: readonly string[];
  approvals?: ApprovalMode;
  title?: string;
}

export type Changes = Partial<
  Pick<
    Settings,
    | "title"
    | "pinned"
    | "archived"
    | "model"
    | "effort"
    | "personality"
    | "profile"
    | "tools"
    | "workspace"
    | "approvals"
    | "read_only"
  >
>;
