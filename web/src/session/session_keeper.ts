/** Loads a session and keeps it up to date with the event stream until it is closed. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { type Connection, EventStream } from "../api/event_stream";
import { asProblem, Problem } from "../api/problem";
import { keepStream, releaseStream } from "../api/tab_presence";
import type { SessionEvent } from "../api/types";
import { firstFramesPast } from "../ui/first_frames";
import { fromView } from "./from_view";
import { beginningOf, readyBeginning, type SessionBeginning } from "./prefetch";
import { SessionStore } from "./session_store";

export class SessionKeeper {
  readonly store = signal<SessionStore | null>(null);
  readonly problem = signal<Problem | null>(null);
  readonly connection = signal<Connection>("connecting");
  private readonly loading = new AbortController();
  private stream: EventStream | null = null;

  constructor(readonly id: string) {
    const ready = readyBeginning(id);
    if (ready === null) void this.load();
    else this.show(ready);
  }

  close(): void {
    this.loading.abort();
    if (this.stream !== null) releaseStream(this.stream);
  }

  private async load(): Promise<void> {
    const { signal: abort } = this.loading;
    try {
      this.show(await beginningOf(this.id, abort));
    } catch (error) {
      if (!abort.aborted) this.problem.value = asProblem(error);
    }
  }

  private show({ view, page }: SessionBeginning): void {
    const session = new SessionStore(fromView(view, page), view.draft);
    this.store.value = session;
    void firstFramesPast().then(() => {
      if (this.loading.signal.aborted) return;
      this.follow(session);
      if (session.head.older.peek() !== null) void session.loadPlan();
    });
  }

  /** The last word of a session that was deleted, here or elsewhere. */
  private onGone(stream: EventStream): void {
    releaseStream(stream);
    this.connection.value = "ended";
    this.problem.value = new Problem("not_found", 404, "");
  }

  private follow(session: SessionStore): void {
    const stream = new EventStream({
      address: keryx.eventsAddress(this.id),
      lastId: () => String(session.seq),
      onFrame: (frame) => {
        if (frame.event === "deleted") this.onGone(stream);
        else if (!session.take(JSON.parse(frame.data) as SessionEvent)) stream.later();
      },
      onConnection: (connection) => {
        this.connection.value = connection;
        if (connection !== "open") session.cutOff();
      },
      onRefused: (status) => {
        if (status === 404) this.problem.value = new Problem("not_found", status, "");
      },
    });
    this.stream = stream;
    keepStream(stream);
  }
}
