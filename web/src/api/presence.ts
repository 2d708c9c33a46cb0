/**
 * Streams rest while nobody looks. Browsers allow few connections to one server over HTTP/1.1,
 * so tabs in the background must not hold any, or a handful of them blocks the next one. One of
 * them, whichever, goes on listening to what concerns all sessions, so that it can tell of it.
 */

import type { EventStream } from "./stream";

const REST_AFTER_MS = 1_000;

const LOOKOUT = "keryx.lookout";

const watched = new Set<EventStream>();
/** Those that one tab in the background keeps. */
const lookouts = new Set<EventStream>();
let standDown: (() => void) | null = null;
let resting = false;
let timer: ReturnType<typeof setTimeout> | null = null;

export function keep(stream: EventStream, lookout = false): void {
  watched.add(stream);
  if (lookout) lookouts.add(stream);
  stream.start();
}

export function release(stream: EventStream): void {
  watched.delete(stream);
  lookouts.delete(stream);
  stream.stop();
}

function onVisibility(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (document.hidden) {
    timer = setTimeout(() => {
      resting = true;
      for (const stream of watched) stream.stop();
      lookOut();
    }, REST_AFTER_MS);
  } else if (resting) {
    resting = false;
    standDown?.();
    for (const stream of watched) stream.start();
  }
}

/** Waits until no other tab in the background listens, and then does. */
function lookOut(): void {
  if (!("locks" in navigator)) return;
  const waiting = new AbortController();
  const released = new Promise<void>((resolve) => {
    standDown = () => {
      standDown = null;
      waiting.abort();
      resolve();
    };
  });
  const listen = async (): Promise<void> => {
    if (!resting) return;
    for (const stream of lookouts) stream.start();
    await released;
  };
  void navigator.locks.request(LOOKOUT, { signal: waiting.signal }, listen).catch(() => undefined);
}

export function watchPresence(): void {
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", () => {
    for (const stream of watched) stream.again();
  });
}
