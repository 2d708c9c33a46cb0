/** One session as the screen reads it: its state folded from events, shown through signals. */

import { batch, type Signal, signal } from "@preact/signals";
import * as keryx from "../api/client";
import { noteServerTime } from "../api/server_clock";
import type { ParentCall, SessionEvent, View } from "../api/types";
import { attempt } from "../ui/notice";
import { FIRST_PAGE } from "./first_paths";
import { fromView } from "./from_view";
import { addNewer, addOlder, closeWindow, covers, limitRows, openWindow, rowAt, shownPart } from "./history_window";
import { readPlan, replacePlan } from "./plan";
import { apply, dropUnlogged } from "./reducer";
import type { Call, Row } from "./rows";
import type { SessionState } from "./session_state";

const NEXT_PAGE = 150;
/** Rows that are held at once: of more, those far from the reader are forgotten. */
const BOUNDS = { most: 1_500, keep: 900, end: 150 };
/** Pages of nothing but calls that are read to find the step that made them. */
const MOST_PAGES = 20;
/** A tab in the background draws no frames, but must not gather without end either. */
const HIDDEN_FLUSH_MS = 250;

/** What stands around the transcript; replaced as a whole, compared field by field. */
export type Head = Pick<
  SessionState,
  | "settings"
  | "turn"
  | "queue"
  | "steers"
  | "approvals"
  | "questions"
  | "context"
  | "compacting"
  | "cost"
  | "usage"
  | "older"
  | "plan"
>;

const HEAD = [
  "settings",
  "turn",
  "queue",
  "steers",
  "approvals",
  "questions",
  "context",
  "compacting",
  "cost",
  "usage",
  "older",
  "plan",
] as const;

type HeadSignals = { readonly [K in keyof Head]: Signal<Head[K]> };

/** A session that is loaded: everything here has a value. */
export class SessionStore {
  /** The rows at the end, where things happen. */
  readonly order: Signal<readonly string[]>;
  /** The rows that are read: those at the end, or a window apart from it. */
  readonly shown: Signal<readonly string[]>;
  /** Whether rows between those that are read and the end are not here. */
  readonly apart = signal(false);
  readonly head: HeadSignals;
  readonly loadingOlder = signal(false);
  readonly loadingNewer = signal(false);
  /** How often the way led back to the end; whoever shows the rows goes there. */
  readonly returns = signal(0);
  /** Whether it has made a call, as far as is loaded. */
  readonly hasCalls: Signal<boolean>;
  /** How often files were changed since this was opened; what shows files reads them anew. */
  readonly filesChanged = signal(0);
  private readonly rows = new Map<string, Signal<Row | undefined>>();
  private readonly calls = new Map<string, Signal<Call | undefined>>();
  private scheduled = false;
  private sought = 0;
  /** What was told while the session is read anew; null if it is not. */
  private toldMeanwhile: SessionEvent[] | null = null;
  /** The row that the reader is at; null: at the end. */
  reader: () => string | null = () => null;

  constructor(
    private readonly state: SessionState,
    readonly draft: View["draft"],
  ) {
    this.order = signal(state.order);
    this.hasCalls = signal(state.calls.size > 0);
    this.shown = signal(state.order);
    this.head = Object.fromEntries(HEAD.map((name) => [name, signal(state[name])])) as unknown as HeadSignals;
    state.touched.rows.clear();
    state.touched.calls.clear();
  }

  get id(): string {
    return this.state.sessionId;
  }

  /** The call of another session that opened this one. */
  get parent(): ParentCall | null {
    return this.state.parent;
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
    this.toldMeanwhile?.push(event);
    // Its rows are elsewhere in the log: they are read as whoever comes now reads them.
    if (event.type === "turn.restored" && applied === "applied") void attempt(() => this.reload());
    if (applied === "applied") this.schedule();
    if (event.type === "files.changed") this.filesChanged.value += 1;
    else if (event.type === "turn.undone") void this.loadPlan();
    // That something is summed up is told to late readers as it was told when it began.
    else if (!("seq" in event) && event.type !== "context.compacting") noteServerTime(event.at);
    return applied !== "gap";
  }

  /** If no plan is here, the newest one may stand in a part of the transcript that is not here. */
  async loadPlan(): Promise<void> {
    if (this.state.plan !== null) return;
    try {
      const answer = await keryx.plan(this.id);
      if (answer.seq) replacePlan(this.state, readPlan(answer));
      this.schedule();
    } catch {
      // The plan is shown again with its next change.
    }
  }

  /** Reads the session anew, and what is told meanwhile once more. */
  private async reload(): Promise<void> {
    if (this.toldMeanwhile !== null) return;
    this.toldMeanwhile = [];
    try {
      const [view, page] = await Promise.all([keryx.view(this.id), keryx.messages(this.id, {}, FIRST_PAGE)]);
      const { state } = this;
      const { rows, calls, touched } = state;
      const fresh = fromView(view, page);
      for (const key of [...rows.keys(), ...fresh.rows.keys()]) touched.rows.add(key);
      for (const id of [...calls.keys(), ...fresh.calls.keys()]) touched.calls.add(id);
      Object.assign(state, { ...fresh, touched });
    } finally {
      const events = this.toldMeanwhile;
      this.toldMeanwhile = null;
      for (const event of events) this.take(event);
      this.schedule();
    }
  }

  /** The connection is lost, or about to be made. */
  cutOff(): void {
    dropUnlogged(this.state);
    this.schedule();
  }

  /** The page before what is read. */
  async loadOlder(): Promise<void> {
    const { historyWindow } = this.state;
    const before = shownPart(this.state).older;
    if (before === null || this.loadingOlder.value) return;
    await this.loading(this.loadingOlder, async () => {
      const page = await keryx.messages(this.id, { before }, NEXT_PAGE);
      // What is read may be another part by now, or have been cut.
      if (this.state.historyWindow === historyWindow && shownPart(this.state).older === before)
        addOlder(this.state, page);
    });
  }

  /** The page after a window. */
  async loadNewer(): Promise<void> {
    const { historyWindow } = this.state;
    if (historyWindow === null || this.loadingNewer.value) return;
    const after = historyWindow.newer;
    await this.loading(this.loadingNewer, async () => {
      const page = await keryx.messages(this.id, { after }, NEXT_PAGE);
      if (this.state.historyWindow === historyWindow && historyWindow.newer === after) addNewer(this.state, page);
    });
  }

  private async loading(flag: Signal<boolean>, load: () => Promise<void>): Promise<void> {
    flag.value = true;
    try {
      await load();
    } finally {
      this.flush();
      flag.value = false;
    }
  }

  /** Makes what is around this fact the part that is read; the row that the fact is in, if it is found. */
  async goTo(seq: number): Promise<string | null> {
    const sought = ++this.sought;
    const { state } = this;
    if (covers(state, seq)) closeWindow(state);
    else if (state.historyWindow === null || !covers(state.historyWindow, seq)) {
      const [before, after] = await Promise.all([
        keryx.messages(this.id, { before: seq + 1 }, FIRST_PAGE),
        keryx.messages(this.id, { after: seq }, FIRST_PAGE),
      ]);
      if (sought !== this.sought) return null;
      openWindow(state, seq, before, after);
    }
    this.flush();
    for (let page = 0; page < MOST_PAGES && rowAt(state, seq) === null; page++) {
      if (shownPart(state).older === null || !covers(shownPart(state), seq)) break;
      await this.loadOlder();
      if (sought !== this.sought) return null;
    }
    return rowAt(state, seq);
  }

  /** Back to the end, wherever the reader is. */
  toNewest(): void {
    this.sought += 1;
    closeWindow(this.state);
    this.flush();
    this.returns.value += 1;
  }

  private schedule(): void {
    if (this.scheduled) return;
    this.scheduled = true;
    const flush = (): void => {
      this.scheduled = false;
      this.flush();
    };
    if (document.hidden) setTimeout(flush, HIDDEN_FLUSH_MS);
    else requestAnimationFrame(flush);
  }

  private flush(): void {
    limitRows(this.state, this.reader(), BOUNDS);
    const { touched } = this.state;
    const { order: shown, older } = shownPart(this.state);
    batch(() => {
      for (const key of touched.rows) show(this.rows, key, this.state.rows.get(key));
      for (const id of touched.calls) show(this.calls, id, this.state.calls.get(id));
      this.order.value = this.state.order;
      this.hasCalls.value ||= this.state.calls.size > 0;
      this.shown.value = shown;
      this.apart.value = this.state.historyWindow !== null;
      const head: Head = { ...this.state, older };
      for (const name of HEAD) (this.head[name] as Signal<unknown>).value = head[name];
    });
    touched.rows.clear();
    touched.calls.clear();
  }
}

function lookup<T>(signals: Map<string, Signal<T>>, key: string, value: () => T): Signal<T> {
  const existing = signals.get(key);
  if (existing !== undefined) return existing;
  const created = signal(value());
  signals.set(key, created);
  return created;
}

function show<T>(signals: Map<string, Signal<T | undefined>>, key: string, value: T | undefined): void {
  const existing = signals.get(key);
  if (existing === undefined) return;
  existing.value = value;
  if (value === undefined) signals.delete(key);
}
