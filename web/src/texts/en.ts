/** Every text of the page, in English. */

import { bytes, seconds, tokens } from "./amounts";
import { doing } from "./doing";
import { looking } from "./looking";
import { sentence } from "./sentences";

const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`;

const OUTCOMES: Record<string, string> = {
  completed: "done",
  failed: "failed",
  denied: "denied",
  cancelled: "cancelled",
  unknown: "unknown",
};

const REASONS: Record<string, string> = {
  interrupt: "by you",
  steer: "by your steer",
  timeout: "it took too long",
  shutdown: "the host was stopped",
  parent: "with what called it",
  crash: "the host crashed",
  undelivered: "nobody could be asked",
  no_progress: "it made no progress",
};

const ERRORS: Record<string, string> = {
  rate_limit: "Too many requests to the model",
  auth: "The model's provider refused the key",
  quota: "The quota is used up",
  context_too_long: "The context is too long for the model",
  model_not_found: "The model does not exist",
  not_configured: "No model is configured",
  unreachable: "The model could not be reached",
  stalled: "The model stopped answering",
  bad_response: "The model's answer could not be read",
  limit: "A limit was reached",
  store: "The log could not be written",
  internal: "Something broke inside",
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

const because = (reason: string | null): string => (reason === null ? "" : (REASONS[reason] ?? reason));

export const en = {
  ...doing,
  ...looking,
  name: "Keryx",
  close: "Close",
  cancel: "Cancel",
  save: "Save",
  retry: "Try again",
  dismiss: "Dismiss",
  loading: "Loading…",
  skip: "Skip to the message box",
  problem: (message: string, hint: string): string => [message, hint].filter(Boolean).map(sentence).join(" "),
  unreachable: "The server cannot be reached.",
  unreadable: "The server's answer could not be read.",

  login: {
    title: "Log in to Keryx",
    lead: "Open the link that keryx serve printed, or paste it here.",
    token: "Token",
    password: "Password",
    byToken: "Token",
    byPassword: "Password",
    how: "Log in with",
    submit: "Log in",
    wrong: "That was not accepted.",
    slow: "Too many attempts. Wait a moment.",
  },

  list: {
    label: "Sessions",
    open: "Sessions",
    close: "Close the list",
    fresh: "New session",
    search: "Search everything",
    pinned: "Pinned",
    active: "Active",
    today: "Today",
    yesterday: "Yesterday",
    untitled: "New session",
    more: "Show more",
    empty: "No sessions yet.",
    emptyArchive: "Nothing is archived.",
    archived: "Archived",
    backFromArchive: "Back to sessions",
    running: "running",
    waiting: "asks you",
    damaged: "damaged",
    failed: "failed",
    now: "now",
    actions: (title: string): string => `Actions for ${title}`,
    rename: "Rename",
    pin: "Pin",
    unpin: "Unpin",
    archive: "Archive",
    unarchive: "Unarchive",
    delete: "Delete",
    title: "Title",
    theme: "Theme",
    themes: { system: "System", light: "Light", dark: "Dark" },
    logout: "Log out",
  },

  deletion: {
    title: "Delete this session?",
    body: (title: string): string => `“${title}” and everything in it will be gone for good.`,
    confirm: "Delete",
  },

  search: {
    title: "Search everything",
    label: "Search in all sessions",
    hint: "Words of a message, a reply or a call",
    none: "Nothing was found.",
    count: (count: number): string => many(count, "hit"),
    kinds: { message: "you", reply: "reply", call: "call" },
  },

  header: {
    settings: "Session settings",
    title: "Title",
    model: "Model",
    workspace: "Workspace",
    personality: "Personality",
    effort: "Effort",
    approvals: "Approvals",
    readOnly: "Read only",
    standard: "Default",
    efforts: { minimal: "Minimal", low: "Low", medium: "Medium", high: "High" },
    approvalModes: { ask: "Ask about every change", auto: "Ask about risky calls", never: "Never ask" },
    context: (used: number, window: number | null): string =>
      window === null ? `${tokens(used)} tokens` : `${tokens(used)} of ${tokens(window)}`,
    contextLabel: "Context in use",
    cost: "Cost so far",
    change: (name: string, value: string): string => `${name}: ${value}. Change`,
  },

  connection: {
    lost: "Connection lost. Trying again…",
    gone: "This session does not exist any more.",
    failed: "This session could not be loaded.",
  },

  empty: {
    title: "What shall be done?",
    lead: "Say it below. A session begins with your first message.",
  },

  transcript: {
    label: "Transcript",
    earlier: "Loading what was before…",
    latest: "To the latest",
    apart: "This is an earlier part.",
    newest: "Back to the newest",
    found: "The place found",
    you: "You",
    reply: "Reply",
    steered: "Steered",
    working: "Working…",
    stopping: "Stopping…",
    waiting: "Waits for you.",
    thinking: "Thinking…",
    reasoning: "Reasoning",
    cut: "cut short",
    steps: (count: number, running: number): string =>
      running > 0 ? `${many(count, "call")}, ${running} running` : many(count, "call"),
    ended: {
      cancelled: (reason: string | null): string => join("Stopped", because(reason)),
      failed: (): string => "The turn failed",
      parked: (reason: string | null): string => join("Set aside", because(reason)),
      unstarted: "Withdrawn before it started",
      leftOver: (count: number): string => `${many(count, "call")} may still run.`,
    },
    error: (kind: string): string => ERRORS[kind] ?? kind,
    announced: { done: "Finished.", asks: "Keryx asks you something." },
  },

  notes: {
    retried: (cause: string, delay: number): string =>
      `${ERRORS[cause] ?? cause}. Asked again after ${seconds(delay)}.`,
    switched: (from: string, to: string, cause: string): string =>
      `${to} takes over from ${from}: ${(ERRORS[cause] ?? cause).toLowerCase()}.`,
    resumed: (attempt: number): string =>
      attempt > 1 ? `Resumed after a restart, for the ${attempt}th time.` : "Resumed after a restart.",
    changed: (changes: Record<string, unknown>): string =>
      sentence(
        Object.entries(changes)
          .filter(([name]) => name in SETTINGS)
          .map(([name, value]) => `${SETTINGS[name]} is now ${shown(value)}`)
          .join(", "),
      ),
  },

  call: {
    cancel: (tool: string): string => `Cancel ${tool}`,
    arguments: "Arguments",
    output: "Output so far",
    result: "Result",
    noResult: "No output.",
    also: (name: string, value: unknown): string =>
      `${name.replaceAll("_", " ")}: ${typeof value === "string" ? value : JSON.stringify(value)}`,
    writing: "being written",
    waiting: "waits",
    asking: "asks you",
    running: "running",
    byYou: "run by you",
    outcome: (outcome: string): string => OUTCOMES[outcome] ?? outcome,
    why: because,
    settled: "has ended since",
    unstarted: "did not start",
    progress: (done: number, total: number | null): string => (total === null ? `${done}` : `${done} of ${total}`),
    nested: (began: number, done: number): string =>
      began === done ? many(began, "nested call") : `${many(began, "nested call")}, ${done} done`,
    nestedMore: (count: number): string => `and ${count} more under way`,
  },

  composer: {
    label: "Message",
    idle: "Say what shall be done…",
    busy: "Say something while it works…",
    attach: "Attach",
    send: "Send",
    queue: "Queue",
    steer: "Steer",
    stop: "Stop",
    failed: "Not sent; your text is still here.",
    files: "Attached files",
    remove: (name: string): string => `Remove ${name}`,
    uploading: "uploading…",
    postponed: "Sends when the upload is done.",
    takeBack: "Don’t send yet",
    notUploaded: (name: string): string => `${name} could not be uploaded`,
    notUploadedHint: "Remove it, or remove it and attach it again",
    pasted: "pasted",
    size: bytes,
  },

  queue: {
    label: "Queued messages",
    next: "Next",
    steers: "Joins at the next boundary",
    edit: "Edit",
    up: "Move up",
    down: "Move down",
    withdraw: "Withdraw",
    text: "Queued message",
    of: (action: string, text: string): string => `${action}: ${text.slice(0, 40)}`,
    attachments: (count: number): string => many(count, "file"),
  },

  asks: {
    label: "Waits for you",
    allow: (tool: string): string => `Allow ${tool}?`,
    risks: { none: "", low: "", high: "Risky" },
    network: "Needs the network",
    reads: (paths: string): string => `Reads ${paths}`,
    writes: (paths: string): string => `Writes ${paths}`,
    deny: "Deny",
    reaches: { session: "Allow until this session ends", always: "Always allow" },
    reach: {
      exact: "Just this, in this folder",
      folder: "Everything in this folder",
      everywhere: "In every folder",
    },
    /** A session is always in its folder. */
    here: (says: string, folder: string | null): string =>
      folder === null ? says : says.replace(`, in sessions that work in ${folder}`, ""),
    back: "Back",
    session: "This session",
    always: "Always",
    once: "Once",
    answer: "Answer",
    send: "Answer",
    expires: (inSeconds: number): string => `expires in ${seconds(inSeconds)}`,
  },

  rules: {
    open: "Approval rules",
    title: "Approval rules",
    lead: "What you allowed with “Always”. Once a rule is removed, such calls ask again, in every session.",
    none: "Nothing is allowed for good. “Always” makes a rule when a call asks you.",
    since: (time: string): string => `since ${time}`,
    remove: "Remove",
    removeThis: (says: string): string => `Remove ${says}`,
    configured: "From the configuration",
    configuredLead: "These stand in config.toml and are changed there.",
    verdicts: { allow: "Allow", ask: "Ask about", deny: "Deny" },
  },

  code: {
    label: (language: string): string => (language ? `Code in ${language}` : "Code"),
    copy: "Copy",
    copied: "Copied",
  },

  file: { download: (name: string): string => `Download ${name}`, image: "Image", file: "File" },
};

function join(what: string, why: string): string {
  return why ? `${what}: ${why}` : what;
}

function shown(value: unknown): string {
  if (value === null || value === "") return "the default";
  if (value === true) return "on";
  if (value === false) return "off";
  return String(value);
}
