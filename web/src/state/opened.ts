/** One session as the screen reads it: its state folded from events, shown through signals. */

import { batch, signal, type Signal } from "@preact/signals";
import type { SessionEvent } from "../api/events";
import * as keryx from "../api/keryx";
import { keep, release } from "../api/presence";
import { asProblem, Problem } from "../api/problem";
import type { View } from "../api/shapes";
import { EventStream, type Connection } from "../api/stream";
import { apply } from "./fold";
import type { Call, Row } from "./rows";
import { heard } from "./serverclock";
import { fromView, prepend, trim, type SessionState } from "./session";

const FIRST_PAGE = 50;
const NEXT_PAGE = 150;
/** More rows than this are forgotten from the far end while the reader is at the near one. */
const MOST_ROWS = 1_500;
const KEPT_ROWS = 900;
/** A tab in the background draws no frames, but must not gather without end either. */
const HIDDEN_FLUSH_MS = 250;

/** What stands around the transcript; replaced as a whole, compared field by field. */
export type Head = Pick<
  SessionState,
  "settings" | "turn" | "queue" | "steers" | "approvals" | "questions" | "context" | "cost" | "usage" | "older"
>;

const HEAD = [
  "settings",
  "turn",
  "queue",
  "steers",
  "approvals",
  "questions",
  "context",
  "cost",
  "usage",
  "older",
] as const;

type HeadSignals = { readonly [K in keyof Head]: Signal<Head[K]> };

/** A session that is loaded: everything here has a value. */
export class Opened {
  readonly order: Signal<readonly string[]>;
  readonly head: HeadSignals;
  readonly loadingOlder = signal(false);
  /** How often files were changed since this was opened; what shows files reads them anew. */
  readonly filesChanged = signal(0);
  private readonly rows = new Map<string, Signal<Row | undefined>>();
  private readonly calls = new Map<string, Signal<Call | undefined>>();
  private scheduled = false;
  /** Whether the reader is at the end, so that the beginning may be forgotten. */
  atEnd = true;

  constructor(
    private readonly state: SessionState,
    readonly draft: View["draft"],
  ) {
    this.order = signal(state.order);
    this.head = Object.fromEntries(HEAD.map((name) => [name, signal(state[name])])) as unknown as HeadSignals;
    state.touched.rows.clear();
    state.touched.calls.clear();
  }

  get id(): string {
    return this.state.sessionId;
  }

  get seq(): number {
    return this.state.seq;
  }

  row(key: string): Signal<Row | undefined> {
    return lookup(this.rows, key, () => this.state.rows.get(key));
  }

  call(id: string): Signal<Call | undefined> {
    return lookup(this.calls, id, () => this.state.calls.get(id));
  }

  /** The row as it is, for whoever only needs to know what kind it is. */
  peek(key: string): Row | undefined {
    return this.state.rows.get(key);
  }

  /** Takes an event; false if facts before it are missing. */
  take(event: SessionEvent): boolean {
    const applied = apply(this.state, event);
    if (applied === "applied") this.schedule();
    if (event.type === "files.changed") this.filesChanged.value += 1;
    else if (!("seq" in event)) heard(event.at);
    return applied !== "gap";
  }

  async loadOlder(): Promise<void> {
    const before = this.state.older;
    if (before === null || this.loadingOlder.value) return;
    this.loadingOlder.value = true;
    try {
      prepend(this.state, await keryx.messages(this.id, before, NEXT_PAGE));
    } finally {
      this.flush();
      this.loadingOlder.value = false;
    }
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const flush = (): void => {
      this.scheduled = false;
      if (this.atEnd && this.state.order.length > MOST_ROWS) trim(this.state, KEPT_ROWS);
      this.flush();
    };
    if (document.hidden) setTimeout(flush, HIDDEN_FLUSH_MS);
    else requestAnimationFrame(flush);
  }

  private flush(): void {
    const { touched } = this.state;
    batch(() => {
      for (const key of touched.rows) show(this.rows, key, this.state.rows.get(key));
      for (const id of touched.calls) show(this.calls, id, this.state.calls.get(id));
      this.order.value = this.state.order;
      for (const name of HEAD) (this.head[name] as Signal<unknown>).value = this.state[name];
    });
    touched.rows.clear();
    touched.calls.clear();
  }
}

function lookup<T>(signals: Map<string, Signal<T>>, key: string, value: () => T): Signal<T> {
  const known = signals.get(key);
  if (known !== undefined) return known;
  const made = signal(value());
  signals.set(key, made);
  return made;
}

function show<T>(signals: Map<string, Signal<T | undefined>>, key: string, value: T | undefined): void {
  const known = signals.get(key);
  if (known === undefined) return;
  known.value = value;
  if (value === undefined) signals.delete(key);
}

/** Loads a session and keeps it up to date until it is closed. */
export class SessionKeeper {
  readonly opened = signal<Opened | null>(null);
  readonly problem = signal<Problem | null>(null);
  readonly connection = signal<Connection>("connecting");
  private readonly loading = new AbortController();
  private stream: EventStream | null = null;

  constructor(readonly id: string) {
    void this.load();
  }

  close(): void {
    this.loading.abort();
    if (this.stream !== null) release(this.stream);
  }

  private async load(): Promise<void> {
    const { signal: abort } = this.loading;
    try {
      // One after the other: a page read after the view holds all that the view stands for.
      const view = await keryx.view(this.id, abort);
      const page = await keryx.messages(this.id, null, FIRST_PAGE, abort);
      const opened = new Opened(fromView(view, page), view.draft);
      this.opened.value = opened;
      this.follow(opened);
    } catch (error) {
      if (!abort.aborted) this.problem.value = asProblem(error);
    }
  }

  private follow(opened: Opened): void {
    const stream = new EventStream({
      address: keryx.eventsAddress(this.id),
      lastId: () => String(opened.seq),
      onFrame: (frame) => {
        if (!opened.take(JSON.parse(frame.data) as SessionEvent)) stream.later();
      },
      onConnection: (connection) => {
        this.connection.value = connection;
      },
      onRefused: (status) => {
        if (status === 404) this.problem.value = new Problem("not_found", status, "");
      },
    });
    this.stream = stream;
    keep(stream);
  }
}
