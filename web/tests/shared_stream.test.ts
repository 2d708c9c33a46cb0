import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { GONE_MS, SharedStream, STEP_IN_MS, type StreamOpening, type TabServices } from "../src/api/shared_stream";
import type { SessionPage, SessionSummary } from "../src/api/types";
import { goneSessions } from "../src/session_list/session_list_store";
import { Locks } from "./locks";

/** A browser with tabs, and the server that they read from. */
class World {
  private readonly locks = new Locks();
  readonly tabs: Tab[] = [];
  readonly connected = new Set<Tab>();

  async opens(): Promise<Tab> {
    const tab = new Tab(this, this.locks);
    this.tabs.push(tab);
    tab.shared.start();
    await settle();
    return tab;
  }

  /** The server says this to whoever reads. */
  async changes(position: number): Promise<void> {
    const frame = `event: session\ndata: {"n":${position}}\nid: ${position}\n\n`;
    for (const tab of this.connected) tab.feed?.enqueue(new TextEncoder().encode(frame));
    await settle();
  }
}

class Tab {
  resting = false;
  /** Messages do not reach it and timers do not run. */
  frozen = false;
  position = 0;
  readonly heard: string[] = [];
  readonly openings: StreamOpening[] = [];
  feed: ReadableStreamDefaultController<Uint8Array> | null = null;
  readonly shared: SharedStream;
  private readonly listeners = new Set<() => void>();

  constructor(
    readonly world: World,
    locks: Locks,
  ) {
    const channel: TabServices["channel"] = {
      onmessage: null,
      close: () => (channel.onmessage = null),
      postMessage: (data: unknown) => {
        for (const other of world.tabs) if (other !== this && !this.frozen) other.hears(structuredClone(data));
      },
    };
    this.hears = (data) => {
      if (!this.frozen)
        queueMicrotask(() => channel.onmessage?.call(channel as BroadcastChannel, { data } as MessageEvent));
    };
    const around: TabServices = {
      lock: (name, options, held) => locks.request(name, options, held),
      channel,
      isResting: () => this.resting,
      onRest: (tell) => {
        this.listeners.add(tell);
        return () => this.listeners.delete(tell);
      },
    };
    const source = {
      address: "/events",
      lastId: () => String(this.position),
      onFrame: (frame: { id: string | null }) => {
        this.heard.push(frame.id ?? "");
        this.position = Math.max(this.position, Number(frame.id));
      },
      onPause: () => undefined,
      onConnection: () => undefined,
      onOpening: (opening: StreamOpening) => void this.openings.push(opening),
    };
    this.shared = new SharedStream(source, around, (_address, init) => this.connect(init?.signal ?? null));
  }

  readonly hears: (data: unknown) => void;

  async rests(resting: boolean): Promise<void> {
    this.resting = resting;
    for (const tell of this.listeners) tell();
    await settle();
  }

  async closes(): Promise<void> {
    this.world.tabs.splice(this.world.tabs.indexOf(this), 1);
    this.shared.stop();
    await settle();
  }

  private connect(signal: AbortSignal | null): Promise<Response> {
    const body = new ReadableStream<Uint8Array>({ start: (feed) => void (this.feed = feed) });
    this.world.connected.add(this);
    signal?.addEventListener("abort", () => this.world.connected.delete(this));
    return Promise.resolve(new Response(body, { status: 200 }));
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await vi.advanceTimersByTimeAsync(0);
}

const readers = (world: World): Tab[] => world.tabs.filter((tab) => tab.shared.reads);

describe("tabs of one browser", () => {
  let world = new World();
  beforeEach(() => {
    vi.useFakeTimers();
    world = new World();
  });
  afterEach(async () => {
    for (const tab of [...world.tabs]) await tab.closes();
    vi.useRealTimers();
  });

  it("share one stream, and all hear all of it", async () => {
    const tabs = [await world.opens(), await world.opens(), await world.opens()];
    await world.changes(1);
    await world.changes(2);
    expect(tabs.map((tab) => tab.heard)).toEqual([
      ["1", "2"],
      ["1", "2"],
      ["1", "2"],
    ]);
    expect([...world.connected]).toEqual([tabs[0]]);
  });

  it("know of the stream that was opened before they came", async () => {
    const first = await world.opens();
    const late = await world.opens();
    expect(late.openings).toEqual(first.openings);
  });

  it("go on when the one that reads is closed, and are told of the new stream", async () => {
    const [first, second, third] = [await world.opens(), await world.opens(), await world.opens()];
    await world.changes(7);
    await first.closes();
    expect([...world.connected]).toEqual([second]);
    expect(second.openings.at(-1)).toMatchObject({ since: "7" });
    expect(third.openings.map((opening) => opening.id)).toEqual(second.openings.map((opening) => opening.id));
    expect(third.openings).toHaveLength(2);
    await world.changes(8);
    expect([second.heard, third.heard]).toEqual([
      ["7", "8"],
      ["7", "8"],
    ]);
  });

  it("in the background leave the reading to one that is looked at", async () => {
    const [first, second, third] = [await world.opens(), await world.opens(), await world.opens()];
    await second.rests(true);
    await first.rests(true);
    await vi.advanceTimersByTimeAsync(STEP_IN_MS);
    await settle();
    expect([readers(world), [...world.connected]]).toEqual([[third], [third]]);
  });

  it("go on in the background while nobody looks at any, with the stream that they have", async () => {
    const [first, second] = [await world.opens(), await world.opens()];
    await second.rests(true);
    await first.rests(true);
    await vi.advanceTimersByTimeAsync(GONE_MS / 2);
    expect([readers(world), first.openings.length]).toEqual([[first], 1]);
    await first.closes();
    expect([...world.connected]).toEqual([second]);
    await world.changes(3);
    expect(second.heard).toEqual(["3"]);
  });

  it("take over when they are looked at again", async () => {
    const [first, second] = [await world.opens(), await world.opens()];
    await second.rests(true);
    await first.rests(true);
    await second.rests(false);
    await vi.advanceTimersByTimeAsync(STEP_IN_MS);
    await settle();
    expect([readers(world), [...world.connected]]).toEqual([[second], [second]]);
  });

  it("take over from one that has fallen silent, which then lines up again", async () => {
    const [first, second] = [await world.opens(), await world.opens()];
    first.frozen = true;
    await vi.advanceTimersByTimeAsync(GONE_MS + 1);
    await settle();
    expect(readers(world)).toEqual([second]);
    first.frozen = false;
    await second.closes();
    expect([readers(world), [...world.connected]]).toEqual([[first], [first]]);
  });

  it("read by themselves where there are no locks", async () => {
    const source = { onFrame: () => undefined, onPause: () => undefined, onConnection: () => undefined };
    const fetching = vi.fn(() => Promise.resolve(new Response(new ReadableStream(), { status: 200 })));
    const openings: StreamOpening[] = [];
    const onOpening = (opening: StreamOpening): void => void openings.push(opening);
    const alone = new SharedStream({ address: "/events", lastId: () => "4", ...source, onOpening }, null, fetching);
    alone.start();
    await settle();
    expect([alone.reads, fetching.mock.calls.length, openings.map((opening) => opening.since)]).toEqual([
      true,
      1,
      ["4"],
    ]);
    alone.stop();
  });
});

describe("after a stream was lost", () => {
  const summary = (session_id: string, position: number, archived = false): SessionSummary =>
    ({ session_id, position, archived }) as SessionSummary;
  const page = (next: number | null, ...sessions: SessionSummary[]): SessionPage => ({ sessions, next });

  it("those that the newest page does not list any more are gone", () => {
    const loaded = [summary("a", 9), summary("b", 7), summary("c", 5)];
    expect(goneSessions(loaded, page(null, summary("a", 9), summary("c", 5)), false)).toEqual(["b"]);
  });

  it("those that are older than the page, or newer, are not", () => {
    const loaded = [summary("newer", 12), summary("b", 7), summary("older", 2)];
    expect(goneSessions(loaded, page(5, summary("a", 9), summary("c", 5)), false)).toEqual(["b"]);
  });

  it("those of the other kind are not its to tell", () => {
    const loaded = [summary("a", 9), summary("old", 7, true)];
    expect(goneSessions(loaded, page(null, summary("a", 9)), false)).toEqual([]);
    expect(goneSessions(loaded, page(null), true)).toEqual(["old"]);
  });
});
