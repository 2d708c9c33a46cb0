/** All sessions as a list: pages from the server, kept up to date by the stream of summaries. */

import { batch, computed, signal, type Signal } from "@preact/signals";
import * as keryx from "../api/keryx";
import { keep, release } from "../api/presence";
import { asProblem, type Problem } from "../api/problem";
import type { Summary } from "../api/shapes";
import { EventStream, type Connection } from "../api/stream";
import { minute } from "./clock";
import { grouped, type Group } from "./groups";

export class Sessions {
  readonly connection = signal<Connection>("connecting");
  readonly problem = signal<Problem | null>(null);
  readonly archived = signal(false);
  readonly loading = signal(false);
  /** Whether there are more than are loaded, of those now shown. */
  readonly more = computed(() => this.next.value[Number(this.archived.value)] !== null);
  readonly groups: { readonly value: readonly Group[] };
  /** What was deleted last, so that a screen that shows it can say so. */
  readonly deleted = signal<string | null>(null);
  /** How many wait for an answer, of those that are loaded. */
  readonly asking: { readonly value: number };
  /** Told of what the stream changes in a session that is known. */
  onChange: (before: Summary, now: Summary) => void = () => undefined;

  private readonly table = new Map<string, Signal<Summary>>();
  private readonly version = signal(0);
  /** Where the next page begins: of the plain ones, of the archived ones. Zero: not asked yet. */
  private readonly next = signal<readonly [number | null, number | null]>([0, 0]);
  private position = 0;
  private stream: EventStream | null = null;

  constructor() {
    this.groups = computed(() => {
      this.version.value;
      const shown = [...this.table.values()].map((each) => each.peek());
      return grouped(
        shown.filter((each) => Boolean(each.archived) === this.archived.value),
        minute.value,
      );
    });
    this.asking = computed(() => {
      this.version.value;
      return [...this.table.values()].filter((each) => each.peek().state === "waiting").length;
    });
  }

  summary(id: string): Signal<Summary> | undefined {
    this.version.value;
    return this.table.get(id);
  }

  /** The first page, then the stream from there on. */
  async start(): Promise<void> {
    await this.loadMore();
    if (this.problem.value !== null || this.stream !== null) return;
    this.stream = new EventStream({
      address: keryx.allEventsAddress,
      lastId: () => String(this.position),
      onFrame: (frame) => this.take(frame.event, frame.data, frame.id),
      onPause: () => {
        this.version.value += 1;
      },
      onConnection: (connection) => {
        this.connection.value = connection;
      },
    });
    keep(this.stream, true);
  }

  stop(): void {
    if (this.stream !== null) release(this.stream);
    this.stream = null;
  }

  async loadMore(): Promise<void> {
    const archived = this.archived.value;
    const before = this.next.value[Number(archived)] ?? null;
    if (before === null || this.loading.value) return;
    this.loading.value = true;
    try {
      const page = await keryx.listSessions(before || null, archived);
      batch(() => {
        for (const summary of page.sessions) this.put(summary);
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

  forget(id: string): void {
    if (!this.table.delete(id)) return;
    batch(() => {
      this.version.value += 1;
      this.deleted.value = id;
    });
  }

  private put(summary: Summary): void {
    const known = this.table.get(summary.session_id);
    // A page may be older than what the stream told meanwhile.
    if (known === undefined) this.table.set(summary.session_id, signal(summary));
    else if (summary.position >= known.peek().position) known.value = summary;
    this.position = Math.max(this.position, summary.position);
  }

  private take(event: string, data: string, id: string | null): void {
    const told = JSON.parse(data) as Summary;
    if (event === "session") {
      const before = this.table.get(told.session_id)?.peek();
      this.put(told);
      if (before !== undefined) this.onChange(before, told);
    } else if (event === "deleted") this.forget(told.session_id);
    if (id !== null) this.position = Math.max(this.position, Number(id) || 0);
  }
}
