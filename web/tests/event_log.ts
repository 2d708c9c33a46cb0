/** A session's story to fold: what a host would say, with facts numbered as they are made. */

import type { LiveEvent, LoggedEvent, SessionEvent, Settings, StepSnapshot, View } from "../src/api/types";
import { fromView } from "../src/session/from_view";
import type { SessionState } from "../src/session/session_state";

export const SETTINGS: Settings = {
  model: "scripted:one",
  profile: "default",
  place: "local",
  workspace: "/project",
  tools: ["terminal"],
  effort: null,
  personality: null,
  title: "",
  pinned: false,
  archived: false,
  approvals: null,
  read_only: false,
  tags: [],
};

export const USAGE = { input_tokens: 10, output_tokens: 5, cached_tokens: 0, reasoning_tokens: 0 };
export const CONTEXT = { window: 1_000, compact_at: 800, last_prompt_tokens: 10 };

/** What the story itself adds, and what nothing of the page reads. */
type Added = "type" | "session_id" | "at" | "seq";
type Unread = "by" | "key" | "effects" | "replay";
type Fields<T> = T extends { type: infer K }
  ? { type: K } & Omit<T, Added | Unread> & Partial<Pick<T, Unread & keyof T>>
  : never;

export class Story {
  readonly events: SessionEvent[] = [];
  seq = 0;
  private clock = 1_000;

  fact(fields: Fields<LoggedEvent>): this {
    this.seq += 1;
    this.events.push({ session_id: "s-1", at: this.clock++, ...fields, seq: this.seq } as LoggedEvent);
    return this;
  }

  live(fields: Fields<LiveEvent>): this {
    this.events.push({ session_id: "s-1", at: this.clock++, ...fields } as LiveEvent);
    return this;
  }

  text(step: string, ...pieces: string[]): this {
    for (const text of pieces) this.live({ type: "text.delta", step_id: step, text });
    return this;
  }
}

export function emptyView(): View {
  const summary = {
    session_id: "s-1",
    title: "",
    state: "idle" as const,
    model: "",
    workspace: "",
    pinned: false,
    archived: false,
    failed: false,
    last_seq: 0,
    created_at: 0,
    changed_at: 0,
    position: 0,
  };
  return {
    summary,
    seq: 0,
    settings: SETTINGS,
    turn: null,
    queue: [],
    approvals: [],
    questions: [],
    calls: [],
    context: null,
    usage: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, reasoning_tokens: 0, cost: 0 },
    draft: { text: "", attachments: [] },
  };
}

export function emptyState(): SessionState {
  return fromView(emptyView(), { rows: [], next: null, seq: 0 });
}

/** The state as plain data, without what only tells the screen what to draw anew. */
export function plain(state: SessionState): unknown {
  const { touched: _touched, rows, calls, ...rest } = state;
  return { ...rest, rows: state.order.map((key) => rows.get(key)), calls: sorted(calls) };
}

function sorted<T>(map: Map<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1));
}

/** What a host would tell a late reader of the step that streams after these events. */
export function snapshotAfter(events: readonly SessionEvent[]): StepSnapshot | null {
  let snapshot: StepSnapshot | null = null;
  let after = 0;
  for (const event of events) {
    if ("seq" in event) after = event.seq;
    if (event.type === "step.started") {
      const { session_id, at, turn_id, step_id } = event;
      snapshot = { type: "step.snapshot", session_id, at, after, turn_id, step_id, text: "", reasoning: "", calls: [] };
    } else if (event.type === "step.replied" || event.type === "step.abandoned") snapshot = null;
    else if (snapshot !== null) grow(snapshot, event);
  }
  return snapshot === null ? null : { ...snapshot, after };
}

function grow(snapshot: StepSnapshot, event: SessionEvent): void {
  if (event.type === "text.delta") snapshot.text += event.text;
  else if (event.type === "reasoning.delta") snapshot.reasoning += event.text;
  else if (event.type === "step.reset") Object.assign(snapshot, { text: "", reasoning: "", calls: [] });
  else if (event.type === "arguments.delta") {
    const { call_id, tool, text } = event;
    const existing = snapshot.calls!.find((call) => call.call_id === call_id);
    if (existing === undefined) snapshot.calls = [...snapshot.calls!, { call_id, tool, arguments: text }];
    else existing.arguments += text;
  }
}
