/**
 * What comes over the wire, by the names that the page uses. The types are the server's own: `make
 * types` writes wire.ts from its description. Only this module and the client import that file.
 */

import type * as wire from "./wire";

export type {
  ApprovalAsked,
  ApprovalRule,
  ApprovalRules,
  CallFinished,
  CallOutput,
  CallProgress,
  CallStarted,
  ContextSize,
  CreatedShare,
  DescribedFolder,
  Entry,
  FailureShown,
  FoundServer,
  Hit,
  ImportedSessions,
  LiveEvent,
  LocalModel,
  LoggedEvent,
  MemoryRecalled,
  MemoryStatus,
  MessageAccepted,
  MessageChanged,
  NestedCalls,
  NestedProgress,
  NestedSum,
  NewestPlan,
  NewProvider,
  NewShare,
  Offer,
  ParentCall,
  PlanItem,
  ProviderEntry,
  ProviderShown,
  QuestionAsked,
  RememberedItem,
  RunningCall,
  RunningNested,
  ServerState,
  ServerStates,
  SessionEvent,
  SettingsShown,
  Setup,
  ShareLink,
  ShareLinks,
  StepReplied,
  StepSnapshot,
  TagCount,
  TagList,
  ToolCall,
  ToolGroup,
  TurnError,
  TurnFinished,
  Usage,
  UsageGroup,
  UsageRow,
  View,
} from "./wire";

export type Outcome = wire.CallFinished["outcome"];
export type TurnOutcome = wire.TurnFinished["outcome"];
export type MessageMode = wire.MessageAccepted["mode"];
export type Decision = wire.ApprovalAnswered["decision"];
export type Reach = wire.Offer["reach"];
export type Settings = wire.SessionSettings;
export type ApprovalMode = NonNullable<Settings["approvals"]>;

export type Attachment = wire.Image | wire.File;
export type ResultPart = wire.CallFinished["result"][number];

export type UsageReport = wire.TitledReport;

/** A session as the list shows it. */
export type SessionSummary = wire.SessionRow;
/** What a session is exported as. */
export type ExportFormat = "markdown" | "html" | "json" | "jsonl";
/** A page of the list; a search answers hits in its place. */
export type SessionPage = Required<Omit<wire.SessionList, "hits">>;

/** When it was said, only the event tells; a view does not. */
export type QueuedMessage = wire.QueuedMessage & { readonly at?: number };

export type MessagePage = wire.TranscriptPage;
/** Where a page of the transcript ends, or begins; without either it is the last one. */
export type PageEdge = { before: number } | { after: number } | Record<string, never>;

export type Models = wire.ModelList;
export type Profiles = wire.ProfileList;
export type Tools = wire.ToolList;

/** What a path leads to. */
export type PathContent = wire.FolderShown | wire.FileShown;
export type FileChanges = wire.Changes;
export type ModelContext = wire.Context;

/** A message on its way. Its key makes a second try the same message. */
export type OutgoingMessage = wire.NewMessage & { readonly text: string; readonly key: string };
/** An upload that goes with a message, by the name and kind that it has there. */
export type AttachedUpload = wire.Attached;
export type Upload = wire.Uploaded;

/** A new session; its id is minted here, so that a second try opens the same one. */
export type Opening = wire.NewSessionBody & { readonly session_id: string };
/** What is to be another in a session; what is absent stays. */
export type SettingsChanges = wire.SessionChanges;

/** A new value for a setting; `before` is what the page has read. What is undefined is not sent: it is not set. */
export interface SettingChange {
  readonly path: readonly string[];
  readonly value: unknown;
  readonly before: unknown;
}
