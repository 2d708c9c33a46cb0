/** What the API answers besides events. Types only. */

import type {
  ApprovalAsked,
  ApprovalMode,
  Attachment,
  CallStarted,
  ContextSize,
  LoggedEvent,
  Mode,
  QuestionAsked,
  Settings,
  Usage,
} from "./events";

export type SessionActivity = "idle" | "running" | "waiting";

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
}

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

export interface Outgoing {
  text: string;
  mode?: Mode;
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
  approvals?: ApprovalMode;
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
    | "workspace"
    | "approvals"
    | "read_only"
  >
>;
