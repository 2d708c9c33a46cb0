/**
 * One event stream for all tabs of a browser, which allows few connections to one server.
 *
 * A lock chooses the tab that reads; it tells the others over a channel, and when it closes the
 * next in line goes on. A tab in the background lets one that is looked at take over, and so does
 * one that has fallen silent. Where there are no locks, each tab reads by itself. It knows nothing
 * of what the events mean: whether something was missed is for their owner to find out.
 */

import { type Connection, EventStream, SILENCE_MS, type Source } from "./event_stream";
import { newKey } from "./ids";
import { ownName } from "./own_name";
import type { Frame } from "./sse_frames";
import { isResting, keepStream, onRest, releaseStream } from "./tab_presence";

/** A connection of the stream: nothing after `since` can be missed by who listened all the while. */
export interface StreamOpening {
  readonly id: string;
  readonly since: string | null;
}

export interface SharedSource extends Source {
  onPause: () => void;
  /** The stream was opened, here or elsewhere. */
  onOpening: (opening: StreamOpening) => void;
}

type TabMessage =
  | { says: "who" }
  | { says: "stands"; connection: Connection; opening: StreamOpening | null; resting: boolean }
  | { says: "frames"; frames: readonly Frame[] };

type Options = { steal?: true; signal?: AbortSignal };

/** What a browser offers for this, as far as it is used. */
export interface TabServices {
  readonly lock: (name: string, options: Options, held: () => Promise<void>) => Promise<void>;
  readonly channel: Pick<BroadcastChannel, "postMessage" | "close" | "onmessage">;
  readonly isResting: () => boolean;
  readonly onRest: (tell: () => void) => () => void;
}

const NAME = ownName("keryx.list");
/** The reader's own line may be silent for long before it says so. */
export const GONE_MS = SILENCE_MS + 5_000;
/** Several that are looked at may see that nobody reads who is; the first one is enough. */
export const STEP_IN_MS = 400;

function browser(): TabServices | null {
  if (!("locks" in navigator && "BroadcastChannel" in globalThis)) return null;
  const lock: TabServices["lock"] = async (name, options, held) =>
    void (await navigator.locks.request(name, options, held));
  return { lock, channel: new BroadcastChannel(NAME), isResting, onRest };
}

export class SharedStream {
  private readonly stream: EventStream;
  private lining: AbortController | null = null;
  private letGo: (() => void) | null = null;
  private opening: StreamOpening | null = null;
  private connection: Connection = "connecting";
  private waiting: Frame[] = [];
  private gone: ReturnType<typeof setTimeout> | null = null;
  private steppingIn: ReturnType<typeof setTimeout> | null = null;
  private stopWatching: () => void = () => undefined;

  constructor(
    private readonly source: SharedSource,
    private readonly around: TabServices | null = browser(),
    reach?: typeof fetch,
  ) {
    let since: string | null = null;
    const own: Source = {
      address: source.address,
      lastId: () => (since = source.lastId()),
      onFrame: (frame) => {
        this.waiting.push(frame);
        source.onFrame(frame);
      },
      onPause: () => {
        // Even with nothing in it: whoever hears it knows that the line is alive.
        this.say({ says: "frames", frames: this.waiting });
        this.waiting = [];
        source.onPause();
      },
      onConnection: (connection) => this.stands(connection, connection === "open" ? { id: newKey(), since } : null),
      onRefused: (status) => source.onRefused?.(status),
    };
    this.stream = new EventStream(own, reach);
    if (around !== null) around.channel.onmessage = (event: MessageEvent<TabMessage>) => this.hear(event.data);
  }

  /** Whether this tab is the one that reads. */
  get reads(): boolean {
    return this.around === null || this.letGo !== null;
  }

  /** From its making on it listens to others; from here on it reads if nobody does. */
  start(): void {
    if (this.around === null) return keepStream(this.stream);
    this.stopWatching = this.around.onRest(() => this.look());
    this.lineUp();
    this.look();
  }

  stop(): void {
    releaseStream(this.stream);
    this.stopWatching();
    this.cancelTimers();
    this.lining?.abort();
    this.letGo?.();
    this.letGo = null;
    this.around?.channel.close();
  }

  // -- who reads

  private lineUp(steal = false): void {
    this.lining?.abort();
    const lining = new AbortController();
    this.lining = lining;
    const options = steal ? { steal: true as const } : { signal: lining.signal };
    // It ends when the lock was let go, or was taken by another: then the line begins anew.
    const again = (): void => {
      if (lining.signal.aborted) return;
      releaseStream(this.stream);
      this.letGo = null;
      this.lineUp();
    };
    this.around!.lock(NAME, options, () => this.read(lining.signal)).then(again, again);
  }

  private read(signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    this.cancelTimers();
    return new Promise((resolve) => {
      this.letGo = resolve;
      keepStream(this.stream, true);
    });
  }

  private stepIn(): void {
    this.cancelTimers();
    if (this.reads) return;
    if (this.around!.isResting()) return this.listenOn();
    this.lineUp(true);
  }

  // -- what is said

  private say(said: TabMessage): void {
    this.around?.channel.postMessage(said);
  }

  /** Where the reader stands, or who it is. */
  private look(): void {
    if (this.reads) this.stands(this.connection, this.opening);
    else {
      this.say({ says: "who" });
      this.listenOn();
    }
  }

  private stands(connection: Connection, opening: StreamOpening | null): void {
    this.say({ says: "stands", connection, opening, resting: this.around?.isResting() ?? false });
    this.takeStand(connection, opening);
  }

  private takeStand(connection: Connection, opening: StreamOpening | null): void {
    this.connection = connection;
    this.source.onConnection(connection);
    if (opening === null || opening.id === this.opening?.id) return;
    this.opening = opening;
    this.source.onOpening(opening);
  }

  private hear(said: TabMessage): void {
    if (said.says === "who") {
      if (this.reads) this.stands(this.connection, this.opening);
      return;
    }
    // Two may speak for a moment while one takes over.
    if (this.reads) return;
    this.listenOn();
    if (said.says === "frames") {
      for (const frame of said.frames) this.source.onFrame(frame);
      this.source.onPause();
      return;
    }
    this.takeStand(said.connection, said.opening);
    if (said.resting && !this.around!.isResting()) {
      this.steppingIn ??= setTimeout(() => this.stepIn(), Math.random() * STEP_IN_MS);
    } else if (this.steppingIn !== null) {
      clearTimeout(this.steppingIn);
      this.steppingIn = null;
    }
  }

  private listenOn(): void {
    if (this.gone !== null) clearTimeout(this.gone);
    this.gone = setTimeout(() => this.stepIn(), GONE_MS);
  }

  private cancelTimers(): void {
    for (const timer of [this.gone, this.steppingIn]) if (timer !== null) clearTimeout(timer);
    this.gone = this.steppingIn = null;
  }
}
