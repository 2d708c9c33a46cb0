/** The transcript: messages, replies, calls on their time axis, and the notes between them. */

import { seconds, tokens } from "./amounts";
import { error } from "./errors";
import { plural, sentence } from "./sentences";

const OUTCOMES: Record<string, string> = {
  completed: "Done",
  failed: "Failed",
  denied: "Denied",
  cancelled: "Cancelled",
  unknown: "Unknown",
  exited: "Exit code not 0",
};

const REASONS: Record<string, string> = {
  timeout: "it took too long",
  shutdown: "the host was stopped",
  parent: "the call that started it has ended",
  crash: "the host crashed",
  expired: "the approval expired",
  undelivered: "no one was there to approve it",
  no_progress: "it made no progress after restarts",
};

/** Reasons that need no colon: "Cancelled by you". */
const AUTHORS: Record<string, string> = {
  interrupt: "by you",
  steer: "by your steer",
};

const SETTINGS: Record<string, string> = {
  model: "model",
  workspace: "workspace",
  personality: "personality",
  effort: "effort",
  approvals: "approvals",
  read_only: "read only",
  place: "place",
  profile: "profile",
};

/** What follows an outcome: " by you", ": it took too long", or nothing. */
function because(reason: string | null): string {
  if (!reason) return "";
  // Some reasons explain themselves after a colon, in the words of the log.
  const [kind = ""] = reason.split(": ", 1);
  return reason in AUTHORS ? ` ${AUTHORS[reason]}` : `: ${REASONS[kind] ?? reason}`;
}

function settingValue(value: unknown): string {
  if (value === null || value === "") return "the profile default";
  if (value === true) return "on";
  if (value === false) return "off";
  return String(value);
}

export const transcript = {
  label: "Transcript",
  loadingEarlier: "Loading earlier messages…",
  /** On paper only. */
  notPrinted:
    "Earlier messages are not printed. Press Ctrl+P in the session to print more of them, or export it as HTML and print that file.",
  earlierPart: "Earlier messages",
  latest: "Jump to latest",
  searchResult: "Search result",
  you: "You",
  reply: "Reply",
  steered: "Steered",
  working: "Working…",
  stopping: "Stopping…",
  waiting: "Waiting for you",
  thinking: "Thinking…",
  reasoning: "Reasoning",
  replyCut: "The reply was cut off.",
  calls: (count: number, running: number): string =>
    running > 0 ? `${plural(count, "call")}, ${running} running` : plural(count, "call"),
  alike: (count: number): string => `${plural(count, "call")}, all done`,
  ended: {
    cancelled: (reason: string | null): string => `Stopped${because(reason)}`,
    failed: (): string => "The turn failed",
    parked: (reason: string | null): string => `Parked${because(reason)}`,
    notStarted: "Cancelled before it started",
    leftOver: (count: number): string => `${plural(count, "call")} may still be running.`,
  },
  /** For people who hear the page. */
  announced: { done: "Done.", waiting: "Keryx is waiting for you." },
};

/** Below an answer. */
export const reply = {
  actions: "Actions for this answer",
  copyMarkdown: "Copy",
  copyText: "Copy as text",
  regenerate: "Regenerate",
  tryAgain: "Try again",
  with: "with…",
  otherWays: "Regenerate with…",
  models: "With model",
  elsewhere: "Elsewhere",
  inFork: "In a fork",
  readAloud: "Read aloud",
  stopReading: "Stop reading",
  variant: (at: number, count: number): string => `${at} of ${count}`,
  previous: "Previous answer",
  next: "Next answer",
};

export const replacing = {
  title: "What about the changed files?",
  body: (count: number): string =>
    `The answer that you replace changed ${plural(count, "file")}. Revert the changes, or keep them?`,
  keep: "Keep the files",
  revert: "Revert the files",
  refused: "Nothing was replaced.",
};

export const turn = {
  actions: "Actions for this turn",
  edit: "Edit",
  editText: "Edited message",
  editNote: "The old message and everything after it stay reachable below the new answer.",
  replay: "Replay this turn",
  fork: "Fork from here",
  undo: "Undo this turn",
  undoTitle: "Undo this turn?",
  undoBody:
    "Keryx removes the turn from the transcript and from the model's context, and reverts the files that the turn changed. Your message goes back into the message box.",
  undoConfirm: "Undo",
  refused: "The turn was not undone.",
  undoKeepFiles: "Undo, but keep the files",
};

export const notes = {
  /** While there is still time to wait, and after that. */
  retrying: (cause: string, left: number): string => `${error(cause)}. Retrying in ${Math.ceil(left)} s.`,
  retried: (cause: string, delay: number): string =>
    `${error(cause)}. Retried after ${seconds(delay).replace(".0 ", " ")}.`,
  switched: (from: string, to: string, cause: string): string =>
    `Switched from ${from} to ${to}: ${error(cause).toLowerCase()}.`,
  resumed: (attempt: number): string =>
    attempt > 1 ? `Resumed after a restart (attempt ${attempt}).` : "Resumed after a restart.",
  changed: (changes: Record<string, unknown>): string =>
    sentence(
      Object.entries(changes)
        .filter(([name]) => name in SETTINGS)
        .map(([name, value]) => `${SETTINGS[name]} is now ${settingValue(value)}`)
        .join(", "),
    ),
};

/** Earlier messages that a summary replaced in the model's context. */
export const compaction = {
  running: (before: number): string => `Compacting the context (${tokens(before)} tokens)…`,
  done: (before: number, after: number): string => `Compacted: ${tokens(before)} → ${tokens(after)} tokens`,
  summary: "Summary",
  /** Of everything before this time, if that is known. */
  summaryOf: (time: string): string => (time ? `Summary of everything before ${time}` : "Summary of earlier messages"),
  about: "The model reads this summary instead of the earlier messages. The transcript keeps all of them.",
  size: (count: number): string => `${tokens(count)} tokens`,
  compactNow: "Compact now",
  compacting: "Compacting…",
  auto: (at: number): string => `Auto-compacts at ${tokens(at)}`,
};

export const call = {
  cancel: (tool: string): string => `Cancel ${tool}`,
  arguments: "Arguments",
  output: "Output so far",
  result: "Result",
  noResult: "No output.",
  resultField: (name: string, value: unknown): string =>
    `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
  preparing: "Preparing",
  queued: "Queued",
  waitingForYou: "Waiting for you",
  /** The same in two parts: the second is shown where there is room. */
  waiting: "Waiting",
  forYou: " for you",
  running: "Running",
  byYou: "Run by you",
  outcome: (outcome: string): string => OUTCOMES[outcome] ?? outcome,
  /** What follows the outcome. */
  why: (outcome: string, reason: string | null, endedLater: boolean): string => {
    const cancelled = outcome === "unknown" && reason !== null && reason in AUTHORS ? ": cancelled" : "";
    return `${cancelled}${reason === outcome ? "" : because(reason)}${endedLater ? ", ended later" : ""}`;
  },
  exited: (code: number): string => `Exit code ${code}`,
  notStarted: "Not started",
  progress: (done: number, total: number | null): string => (total === null ? `${done}` : `${done} of ${total}`),
  nested: (began: number, done: number): string =>
    began === done ? plural(began, "nested call") : `${plural(began, "nested call")}, ${done} done`,
  moreNested: (count: number): string => `and ${count} more`,
};

export const timeline = {
  step: (number: number): string => `Step ${number}`,
  details: (tool: string): string => `Details of ${tool}`,
  nested: "Nested calls",
  nestedTool: "nested calls",
  cancel: (tool: string, preview: string): string => `Cancel nested ${tool} ${preview}`.trim(),
  count: (count: number, ended: number): string => (ended > 0 && ended < count ? `${ended} of ${count}` : `${count}`),
  /** For people who hear the page: what a line of nested calls shows. */
  nestedLine: (tool: string, count: number, form: string, preview: string, ended = 0): string =>
    ended > 0 && ended < count
      ? `${tool}: ${count - ended} of ${count} ${form.toLowerCase()}`
      : `${tool}${preview ? ` ${preview}` : ""}: ${count > 1 ? `${count} ` : ""}${form.toLowerCase()}`,
  callsOf: (tool: string, count: number): string => `${tool}: ${plural(count, "call")}`,
  turn: (model: string, tools: string): string => `This turn: model ${model}, tools ${tools}`,
  saved: (serial: string, saved: string): string =>
    `; running calls in parallel saved ${saved} (${serial} one after another)`,
};

export const diff = {
  label: (path: string): string => `Diff of ${path}`,
  added: "New",
  deleted: "Deleted",
  moved: (to: string): string => `Moved to ${to}`,
  more: (count: number): string => `${plural(count, "more line")} not shown`,
  lines: (added: number, removed: number): string => `${added} added, ${removed} removed`,
};

export const code = {
  label: (language: string): string => (language ? `Code in ${language}` : "Code"),
  copy: "Copy",
  copied: "Copied",
};

export const maths = { label: "Formula" };

export const diagram = {
  label: "Diagram",
  source: "Source",
  show: "Diagram",
  /** The source says what is drawn to those who do not see it. */
  alt: (source: string): string => `Diagram: ${source.slice(0, 500)}`,
  failed: (problem: string): string => `The diagram could not be drawn. ${problem}`.trim(),
};

export const file = { download: (name: string): string => `Download ${name}`, image: "Image", file: "File" };
