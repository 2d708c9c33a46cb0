import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Connection, EventStream, FIRST_DELAY_MS, MOST_DELAY_MS, SILENCE_MS } from "../src/api/event_stream";
import { type Frame, Frames } from "../src/api/sse_frames";

class Server {
  readonly requests: (string | null)[] = [];
  /** What the next connection gets: a status, a broken line, or a stream that is fed by hand. */
  next: number | "broken" | "stream" = "stream";
  private feed: ReadableStreamDefaultController<Uint8Array> | null = null;
  aborted = 0;

  readonly fetch: typeof fetch = async (_address, init) => {
    this.requests.push(new Headers(init?.headers).get("Last-Event-ID"));
    init?.signal?.addEventListener("abort", () => (this.aborted += 1));
    if (this.next === "broken") throw new TypeError("no network");
    if (typeof this.next === "number") return new Response("", { status: this.next });
    const body = new ReadableStream<Uint8Array>({ start: (feed) => void (this.feed = feed) });
    return new Response(body, { status: 200 });
  };

  async say(text: string): Promise<void> {
    this.feed!.enqueue(new TextEncoder().encode(text));
    await settle();
  }

  async hangUp(): Promise<void> {
    this.feed!.close();
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await vi.advanceTimersByTimeAsync(0);
}

function open(server: Server) {
  const frames: Frame[] = [];
  const connections: Connection[] = [];
  const refused: number[] = [];
  let last: string | null = "7";
  const source = {
    address: "/events",
    lastId: () => last,
    onFrame: (frame: Frame) => {
      frames.push(frame);
      if (frame.id !== null) last = frame.id;
    },
    onConnection: (connection: Connection) => void connections.push(connection),
    onRefused: (status: number) => void refused.push(status),
  };
  const stream = new EventStream(source, server.fetch, () => 1);
  stream.start();
  return { stream, frames, connections, refused };
}

describe("the stream", () => {
  const server = { now: new Server() };
  beforeEach(() => {
    vi.useFakeTimers();
    server.now = new Server();
  });
  afterEach(() => vi.useRealTimers());

  it("resumes after the last fact that was seen, and live events do not count", async () => {
    const { frames, connections, stream } = open(server.now);
    await settle();
    await server.now.say('event: a\ndata: {"x":1}\nid: 8\n\nevent: b\ndata: live\n\n');
    expect(frames.map((frame) => frame.event)).toEqual(["a", "b"]);
    await server.now.hangUp();
    expect(connections.at(-1)).toBe("lost");
    await vi.advanceTimersByTimeAsync(FIRST_DELAY_MS);
    expect(server.now.requests).toEqual(["7", "8"]);
    expect(connections).toEqual(["connecting", "open", "lost", "open"]);
    stream.stop();
  });

  it("backs off while the server is away, up to a bound, and begins anew once it is back", async () => {
    server.now.next = "broken";
    const { stream } = open(server.now);
    await settle();
    let waited = FIRST_DELAY_MS;
    for (let attempt = 2; attempt <= 9; attempt++) {
      await vi.advanceTimersByTimeAsync(waited - 1);
      expect(server.now.requests).toHaveLength(attempt - 1);
      await vi.advanceTimersByTimeAsync(1);
      expect(server.now.requests).toHaveLength(attempt);
      waited = Math.min(MOST_DELAY_MS, waited * 2);
    }
    server.now.next = "stream";
    await vi.advanceTimersByTimeAsync(MOST_DELAY_MS);
    await server.now.say(": beat\n\n");
    await server.now.hangUp();
    await vi.advanceTimersByTimeAsync(FIRST_DELAY_MS);
    expect(server.now.requests).toHaveLength(11);
    stream.stop();
  });

  it("takes silence for a lost connection, but a beat for a sign of life", async () => {
    const { connections, stream } = open(server.now);
    await settle();
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    await server.now.say(": beat\n\n");
    await vi.advanceTimersByTimeAsync(SILENCE_MS - 1);
    expect(connections.at(-1)).toBe("open");
    await vi.advanceTimersByTimeAsync(1);
    expect(connections.at(-1)).toBe("lost");
    expect(server.now.aborted).toBeGreaterThan(0);
    stream.stop();
  });

  it.each([401, 403, 404])("ends for good when it is refused with %i", async (status) => {
    server.now.next = status;
    const { connections, refused } = open(server.now);
    await settle();
    await vi.advanceTimersByTimeAsync(10 * MOST_DELAY_MS);
    expect(server.now.requests).toHaveLength(1);
    expect(connections.at(-1)).toBe("ended");
    expect(refused).toEqual([status]);
  });

  it.each([429, 500, 503])("tries again after %i", async (status) => {
    server.now.next = status;
    const { stream } = open(server.now);
    await settle();
    await vi.advanceTimersByTimeAsync(FIRST_DELAY_MS);
    expect(server.now.requests).toHaveLength(2);
    stream.stop();
  });

  it("says nothing more once it is stopped", async () => {
    const { frames, stream } = open(server.now);
    await settle();
    stream.stop();
    await vi.advanceTimersByTimeAsync(10 * SILENCE_MS);
    expect(server.now.requests).toHaveLength(1);
    expect(frames).toEqual([]);
  });
});

describe("frames", () => {
  const text =
    'retry: 1000\n\n: beat\n\nevent: a\ndata: {"b":"ü"}\nid: 3\n\r\nevent:c\r\ndata:one\r\ndata: two\r\n\r\n';
  const whole = new Frames().take(text);

  it("are read as the format says", () => {
    expect(whole).toEqual([
      { event: "a", data: '{"b":"ü"}', id: "3" },
      { event: "c", data: "one\ntwo", id: null },
    ]);
  });

  it.each(Array.from(text, (_, at) => at))("are the same when cut at %i", (at) => {
    const frames = new Frames();
    expect([...frames.take(text.slice(0, at)), ...frames.take(text.slice(at))]).toEqual(whole);
  });
});
