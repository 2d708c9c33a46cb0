/**
 * An event stream that stays: it resumes after what was seen last, backs off when the server is
 * away, and takes silence for a lost connection. It knows nothing of what the events mean.
 */

import { noticeUnauthorized } from "./http";
import { type Frame, Frames } from "./sse_frames";

/** connecting: nothing came yet. lost: it was tried and failed, and is tried again. */
export type Connection = "connecting" | "open" | "lost" | "ended";

/** The server's beat is 15 s; two may be late before the line counts as dead. */
export const SILENCE_MS = 40_000;
export const FIRST_DELAY_MS = 500;
export const MOST_DELAY_MS = 15_000;

export interface Source {
  address: string;
  /** The last fact seen; asked at every connection, so the owner of the state decides. */
  lastId: () => string | null;
  onFrame: (frame: Frame) => void;
  /** After the frames of one read: a good moment to show what they made. */
  onPause?: () => void;
  onConnection: (connection: Connection) => void;
  /** The stream can never be opened: the thing is gone, or must not be seen. */
  onRefused?: (status: number) => void;
}

export class EventStream {
  private attempt = 0;
  private reading: AbortController | null = null;
  private retry: ReturnType<typeof setTimeout> | null = null;
  private silence: ReturnType<typeof setTimeout> | null = null;
  private stopped = true;

  constructor(
    private readonly source: Source,
    private readonly reach: typeof fetch = (...args) => fetch(...args),
    private readonly random: () => number = Math.random,
  ) {}

  start(): void {
    if (!this.stopped) return;
    this.stopped = false;
    this.attempt = 0;
    this.source.onConnection("connecting");
    void this.connect();
  }

  stop(): void {
    this.stopped = true;
    this.drop();
  }

  /** Connect anew right now: the network is back. */
  again(): void {
    if (this.stopped) return;
    this.drop();
    void this.connect();
  }

  /** Connect anew soon: what came did not fit. */
  later(): void {
    this.drop();
    if (this.stopped) return;
    this.source.onConnection("lost");
    const most = Math.min(MOST_DELAY_MS, FIRST_DELAY_MS * 2 ** this.attempt);
    this.attempt += 1;
    this.retry = setTimeout(() => void this.connect(), most * (0.5 + this.random() / 2));
  }

  private drop(): void {
    this.reading?.abort();
    this.reading = null;
    if (this.retry !== null) clearTimeout(this.retry);
    if (this.silence !== null) clearTimeout(this.silence);
    this.retry = this.silence = null;
  }

  private async connect(): Promise<void> {
    const reading = new AbortController();
    this.reading = reading;
    this.listen(reading);
    try {
      const headers: Record<string, string> = { Accept: "text/event-stream" };
      const last = this.source.lastId();
      if (last !== null) headers["Last-Event-ID"] = last;
      const response = await this.reach(this.source.address, { headers, signal: reading.signal, cache: "no-store" });
      if (reading !== this.reading) return;
      if (response.ok && response.body) await this.read(response.body, reading);
      else if (this.isFinal(response.status)) return;
    } catch {
      // Whatever broke it, the answer is the same: try again, after what was seen last.
    }
    if (reading === this.reading) this.later();
  }

  private async read(body: ReadableStream<Uint8Array>, reading: AbortController): Promise<void> {
    const frames = new Frames();
    const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
    this.source.onConnection("open");
    for (;;) {
      const { done, value } = await reader.read();
      if (reading !== this.reading || done) return;
      this.attempt = 0;
      this.listen(reading);
      for (const frame of frames.take(value)) {
        this.source.onFrame(frame);
        if (reading !== this.reading) return;
      }
      this.source.onPause?.();
    }
  }

  private listen(reading: AbortController): void {
    if (this.silence !== null) clearTimeout(this.silence);
    this.silence = setTimeout(() => {
      if (reading !== this.reading) return;
      reading.abort();
      this.later();
    }, SILENCE_MS);
  }

  private isFinal(status: number): boolean {
    if (status < 400 || status >= 500 || status === 408 || status === 429) return false;
    this.stopped = true;
    this.drop();
    if (status === 401) noticeUnauthorized();
    this.source.onConnection("ended");
    this.source.onRefused?.(status);
    return true;
  }
}
