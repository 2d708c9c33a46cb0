import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type * as Ahead from "../src/session/prefetch";
import { emptyView } from "./event_log";

/** Answers each path with what was said it holds, and remembers what was asked. */
class Server {
  readonly paths: string[] = [];
  view = { ...emptyView(), seq: 7 };
  /** What each reading of the messages says it has read; the last one stays. */
  seqs: (number | undefined)[] = [7];
  status = 200;

  readonly fetch = async (path: string): Promise<Response> => {
    this.paths.push(path.split("?")[0]!);
    if (this.status !== 200) return new Response("{}", { status: this.status });
    if (path.startsWith("api/sessions?")) return Response.json({ sessions: [], next: null });
    if (!path.includes("/messages")) return Response.json(this.view);
    const seq = this.seqs.length > 1 ? this.seqs.shift() : this.seqs[0];
    return Response.json({ rows: [], next: null, ...(seq === undefined ? {} : { seq }) });
  };
}

const LIST = "api/sessions";
const VIEW = "api/sessions/s-1";
const MESSAGES = "api/sessions/s-1/messages";
const never = new AbortController().signal;
let server: Server;

/** As if the page had just been opened there: nothing is known from before. */
async function openedAt(hash: string): Promise<typeof Ahead> {
  vi.resetModules();
  vi.stubGlobal("location", { hash });
  return import("../src/session/prefetch");
}

beforeEach(() => {
  server = new Server();
  vi.stubGlobal("fetch", server.fetch);
});
afterEach(() => vi.unstubAllGlobals());

describe("what the first paint needs", () => {
  it("is asked for at once, and once", async () => {
    const ahead = await openedAt("#/s/s-1");
    ahead.prefetch();
    expect(server.paths).toEqual([VIEW, MESSAGES, LIST]);
    const { view, page } = await ahead.beginningOf("s-1", never);
    await ahead.firstSessions();
    expect([view.seq, page.seq, server.paths.length]).toEqual([7, 7, 3]);
  });

  it("is asked for anew by whoever comes later", async () => {
    const ahead = await openedAt("#/s/s-1");
    ahead.prefetch();
    await ahead.beginningOf("s-1", never);
    await ahead.firstSessions();
    await ahead.beginningOf("s-1", never);
    await ahead.firstSessions();
    expect(server.paths).toEqual([VIEW, MESSAGES, LIST, VIEW, MESSAGES, LIST]);
  });

  it("is not given to whoever wants another session", async () => {
    const ahead = await openedAt("#/s/s-1");
    ahead.prefetch();
    await ahead.beginningOf("s-2", never);
    expect(server.paths.slice(3)).toEqual(["api/sessions/s-2", "api/sessions/s-2/messages"]);
  });

  it("is nothing while a link has yet to let in", async () => {
    const ahead = await openedAt("#token=once");
    ahead.prefetch();
    expect(server.paths).toEqual([]);
  });

  it("is not given to whoever has left", async () => {
    const ahead = await openedAt("#/s/s-1");
    ahead.prefetch();
    const leaving = new AbortController();
    const beginning = ahead.beginningOf("s-1", leaving.signal);
    leaving.abort();
    await expect(beginning).rejects.toThrow(/abort/i);
  });

  it("tells of a missing login whoever asks what to do about it, even if that is later", async () => {
    const ahead = await openedAt("#/s/s-1");
    const { whenUnauthorized } = await import("../src/api/http");
    server.status = 401;
    ahead.prefetch();
    await expect(ahead.beginningOf("s-1", never)).rejects.toMatchObject({ kind: "unauthorized" });
    const callback = vi.fn();
    whenUnauthorized(callback);
    expect(callback).toHaveBeenCalled();
  });
});

describe("what the document's first script asked for", () => {
  async function sentEarlyAt(hash: string): Promise<typeof Ahead> {
    const ahead = await openedAt(hash);
    vi.stubGlobal("navigator", { language: "en" });
    await import("../src/first_requests");
    return ahead;
  }
  afterEach(() => {
    globalThis.keryxEarly = undefined;
  });

  it("is all that the page needs, and is not asked for again", async () => {
    const ahead = await sentEarlyAt("#/s/s-1");
    expect(server.paths).toEqual([VIEW, MESSAGES, LIST]);
    ahead.prefetch();
    await ahead.beginningOf("s-1", never);
    await ahead.firstSessions();
    expect(server.paths).toEqual([VIEW, MESSAGES, LIST]);
  });

  it("is there at once, if it came before the page", async () => {
    const ahead = await sentEarlyAt("#/s/s-1");
    ahead.prefetch();
    expect(ahead.readyBeginning("s-1")).toBeNull();
    await new Promise((resolve) => setTimeout(resolve));
    expect(ahead.readyBeginning("s-2")).toBeNull();
    expect(ahead.readyBeginning("s-1")?.view.seq).toBe(7);
    expect(ahead.readyBeginning("s-1")).toBeNull();
  });

  it("is nothing while a link has yet to let in", async () => {
    await sentEarlyAt("#token=once");
    expect(server.paths).toEqual([]);
  });

  it("tells of a missing login", async () => {
    server.status = 401;
    const ahead = await sentEarlyAt("#/s/s-1");
    ahead.prefetch();
    await expect(ahead.beginningOf("s-1", never)).rejects.toMatchObject({ kind: "unauthorized" });
  });
});

describe("a view and a page that were read at the same time", () => {
  it("fit together if the page was read later", async () => {
    const ahead = await openedAt("#/s/s-1");
    server.seqs = [9];
    expect((await ahead.beginningOf("s-1", never)).page.seq).toBe(9);
    expect(server.paths).toEqual([VIEW, MESSAGES]);
  });

  it("are made to fit if the page was read before", async () => {
    const ahead = await openedAt("#/s/s-1");
    server.seqs = [6, 8];
    expect((await ahead.beginningOf("s-1", never)).page.seq).toBe(8);
    expect(server.paths).toEqual([VIEW, MESSAGES, MESSAGES]);
  });

  it("are made to fit if nobody says when the page was read", async () => {
    const ahead = await openedAt("#/s/s-1");
    server.seqs = [undefined];
    await ahead.beginningOf("s-1", never);
    expect(server.paths).toEqual([VIEW, MESSAGES, MESSAGES]);
  });
});
