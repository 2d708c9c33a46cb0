/** Loads a session and keeps it up to date with the event stream until it is closed. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { type Connection, EventStream } from "../api/event_stream";
import type { SessionEvent } from "../api/events";
import { asProblem, Problem } from "../api/problem";
import { keep, release } from "../api/tab_presence";
import { fromView } from "./from_view";
import { beginningOf } from "./prefetch";
import { Opened } from "./session_store";

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
      const { view, page } = await beginningOf(this.id, abort);
      const opened = new Opened(fromView(view, page), view.draft);
      this.opened.value = opened;
      this.follow(opened);
    } catch (error) {
      if (!abort.aborted) this.problem.value = asProblem(error);
    }
  }

  /** The last word of a session that was deleted, here or elsewhere. */
  private onGone(stream: EventStream): void {
    release(stream);
    this.connection.value = "ended";
    this.problem.value = new Problem("not_found", 404, "");
  }

  private follow(opened: Opened): void {
    const stream = new EventStream({
      address: keryx.eventsAddress(this.id),
      lastId: () => String(opened.seq),
      onFrame: (frame) => {
        if (frame.event === "deleted") this.onGone(stream);
        else if (!opened.take(JSON.parse(frame.data) as SessionEvent)) stream.later();
      },
      onConnection: (connection) => {
        this.connection.value = connection;
        if (connection !== "open") opened.cutOff();
      },
      onRefused: (status) => {
        if (status === 404) this.problem.value = new Problem("not_found", status, "");
      },
    });
    this.stream = stream;
    keep(stream);
  }
}
