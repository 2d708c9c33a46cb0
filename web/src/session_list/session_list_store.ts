/** All sessions as a list: pages from the server, kept up to date by the stream of summaries. */

import { batch, computed, type Signal, signal } from "@preact/signals";
import * as keryx from "../api/client";
import type { Connection } from "../api/event_stream";
import { asProblem, type Problem } from "../api/problem";
import { SharedStream, type StreamOpening } from "../api/shared_stream";
import { onRest } from "../api/tab_presence";
import type { SessionPage, SessionSummary, TagCount } from "../api/types";
import { firstSessions } from "../session/prefetch";
import { minute } from "../ui/clock";
import { type Group, groupByDay } from "./day_groups";
import { isListed } from "./listed";
import { dropActions } from "./row_actions";
import { countsDiffer, type Folder, foldersOf } from "./tag_folders";

/** So many are read again after a stream was lost. */
const NEWEST = 200;

export class Sessions {
  readonly connection = signal<Connection>("connecting");
  readonly problem = signal<Problem | null>(null);
  readonly archived = signal(false);
  readonly loading = signal(false);
  /** Whether there are more than are loaded, of those now shown. */
  readonly more = computed(() => this.next.value[Number(this.archived.value)] !== null);
  readonly groups: { readonly value: readonly Group[] };
  /** The tags as folders, of what is now shown. */
  readonly folders: { readonly value: readonly Folder[] };
  /** What was deleted last, so that a screen that shows it can say so. */
  readonly deleted = signal<string | null>(null);
  /** How many wait for an answer, of those that are loaded. */
  readonly asking: { readonly value: number };
  /** Told of what the stream changes in a session that is known. */
  onChange: (before: SessionSummary, now: SessionSummary) => void = () => undefined;

  private readonly table = new Map<string, Signal<SessionSummary>>();
  private readonly version = signal(0);
  /** All tags with their counts, as the server said last. */
  private readonly counts = signal<readonly TagCount[]>([]);
  private counting: "no" | "once" | "again" = "no";
  /** Where the next page begins: of the plain ones, of the archived ones. Zero: not asked yet. */
  private readonly next = signal<readonly [number | null, number | null]>([0, 0]);
  /** All that changed up to here is in the table, of what is loaded. */
  private position = 0;
  private stream: SharedStream | null = null;
  private opened = false;

  constructor() {
    onRest((resting) => {
      // What was told to a tab that slept may not have reached it.
      if (!resting && this.stream !== null) void this.catchUp();
    });
    this.groups = computed(() => {
      this.version.value;
      const shown = [...this.table.values()].map((row) => row.peek());
      return groupByDay(
        shown.filter((summary) => isListed(summary, this.archived.value)),
        minute.value,
      );
    });
    this.folders = computed(() => {
      this.version.value;
      const loaded = [...this.table.values()].map((row) => row.peek());
      return foldersOf(loaded, this.counts.value, this.archived.value);
    });
    this.asking = computed(() => {
      this.version.value;
      return [...this.table.values()].filter((row) => row.peek().state === "waiting").length;
    });
  }

  summary(id: string): Signal<SessionSummary> | undefined {
    this.version.value;
    return this.table.get(id);
  }

  /** One that works in this folder, of those that are loaded. */
  within(workspace: string): string | null {
    const match = [...this.table.values()].find((row) => row.peek().workspace === workspace);
    return match?.peek().session_id ?? null;
  }

  /** Whether this tab is the one that hears of changes first. */
  get reads(): boolean {
    return this.stream?.reads ?? false;
  }

  /** The first page, then the stream from there on; what others say meanwhile counts already. */
  async start(): Promise<void> {
    if (this.stream !== null) return this.loadMore();
    const stream = new SharedStream({
      address: keryx.allEventsAddress,
      lastId: () => String(this.position),
      onFrame: (frame) => this.take(frame.event, frame.data, frame.id),
      onPause: () => {
        this.version.value += 1;
      },
      onConnection: (connection) => {
        this.connection.value = connection;
      },
      onOpening: (opening) => this.onOpening(opening),
    });
    this.stream = stream;
    await this.loadMore();
    this.countTags();
    if (this.problem.value === null && this.stream === stream) stream.start();
    else this.stop();
  }

  stop(): void {
    this.stream?.stop();
    this.stream = null;
    this.opened = false;
  }

  async loadMore(): Promise<void> {
    const archived = this.archived.value;
    const before = this.next.value[Number(archived)] ?? null;
    if (before === null || this.loading.value) return;
    this.loading.value = true;
    try {
      const page = await (before || archived ? keryx.listSessions(before || null, archived) : firstSessions());
      batch(() => {
        for (const summary of page.sessions) this.put(summary);
        if (!(archived || before)) this.reached(page.sessions[0]?.position);
        const [plain, old] = this.next.value;
        this.next.value = archived ? [plain, page.next ?? null] : [page.next ?? null, old];
        this.version.value += 1;
        this.problem.value = null;
      });
    } catch (error) {
      this.problem.value = asProblem(error);
    } finally {
      this.loading.value = false;
    }
  }

  async showArchived(archived: boolean): Promise<void> {
    this.archived.value = archived;
    if (this.next.value[Number(archived)] === 0) await this.loadMore();
  }

  /** All sessions of a folder, which may be older than the pages that are loaded. */
  async loadTag(tag: string): Promise<void> {
    const archived = this.archived.peek();
    let before: number | null = null;
    do {
      const page: SessionPage = await keryx.taggedSessions(tag, before, archived);
      this.add(page.sessions);
      before = page.next ?? null;
    } while (before !== null);
  }

  /** Sessions that an answer told of, before the stream does. */
  add(summaries: readonly SessionSummary[]): void {
    batch(() => {
      for (const summary of summaries) this.put(summary);
      this.version.value += 1;
    });
  }

  forget(id: string): void {
    const tagged = (this.table.get(id)?.peek().tags ?? []).length > 0;
    if (!this.drop(id)) return;
    if (tagged) this.countTags();
    batch(() => {
      this.version.value += 1;
      this.deleted.value = id;
    });
  }

  private drop(id: string): boolean {
    dropActions(id);
    return this.table.delete(id);
  }

  /** A stream that was opened before may have missed something while it was not open. */
  private onOpening({ since }: StreamOpening): void {
    const missed = this.opened || Number(since) > this.position;
    this.opened = true;
    if (missed) void this.catchUp();
  }

  /** The newest ones again; those that are not among them any more are gone. */
  private async catchUp(): Promise<void> {
    const archived = this.archived.peek();
    try {
      const plain = await keryx.listSessions(null, false, NEWEST);
      const old = archived ? await keryx.listSessions(null, true, NEWEST) : null;
      batch(() => {
        this.renew(plain, false);
        if (old !== null) this.renew(old, true);
        else this.dropArchived();
        this.version.value += 1;
      });
    } catch {
      // The stream is opened anew when the server can be reached, and then this is done again.
    }
  }

  private renew(page: SessionPage, archived: boolean): void {
    for (const id of goneSessions(
      [...this.table.values()].map((row) => row.peek()),
      page,
      archived,
    ))
      this.drop(id);
    for (const summary of page.sessions) this.put(summary);
  }

  /** They are read anew when somebody looks at them. */
  private dropArchived(): void {
    for (const [id, row] of this.table) if (row.peek().archived) this.table.delete(id);
    this.next.value = [this.next.value[0], 0];
  }

  private put(summary: SessionSummary): void {
    const existing = this.table.get(summary.session_id);
    if (this.stream !== null && countsDiffer(existing?.peek(), summary)) this.countTags();
    // A page may be older than what the stream told meanwhile.
    if (existing === undefined) this.table.set(summary.session_id, signal(summary));
    else if (summary.position >= existing.peek().position) existing.value = summary;
  }

  /** Asks for the counts; what changes meanwhile is asked for once more. */
  private countTags(): void {
    if (this.counting !== "no") {
      this.counting = "again";
      return;
    }
    this.counting = "once";
    keryx
      .tags()
      .then(
        ({ tags }) => {
          this.counts.value = tags;
        },
        // The folders of loaded sessions are there all the same.
        () => undefined,
      )
      .finally(() => {
        const again = this.counting === "again";
        this.counting = "no";
        if (again) this.countTags();
      });
  }

  private reached(position = 0): void {
    this.position = Math.max(this.position, position);
  }

  private take(event: string, data: string, id: string | null): void {
    const summary = JSON.parse(data) as SessionSummary;
    if (event === "session") {
      const before = this.table.get(summary.session_id)?.peek();
      this.put(summary);
      if (before !== undefined) this.onChange(before, summary);
    } else if (event === "deleted") this.forget(summary.session_id);
    if (id !== null) this.reached(Number(id) || 0);
  }
}

/** Those that this page of the newest would list, if they were still there as they were. Pure. */
export function goneSessions(
  loaded: readonly SessionSummary[],
  page: SessionPage,
  archived: boolean,
): readonly string[] {
  const listed = new Set(page.sessions.map((summary) => summary.session_id));
  // What changed after the page was made is in none, and neither is what is older than its last one.
  const newest = page.sessions[0]?.position ?? (page.next === null ? Number.POSITIVE_INFINITY : 0);
  // A child agent that waits is on the first page however old it is, so the last row does not tell.
  const oldest = page.next ?? 0;
  return loaded
    .filter((summary) => Boolean(summary.archived) === archived && !listed.has(summary.session_id))
    .filter((summary) => summary.position >= oldest && summary.position <= newest)
    .map((summary) => summary.session_id);
}
