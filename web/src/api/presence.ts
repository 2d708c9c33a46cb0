/**
 * Streams rest while nobody looks. Browsers allow few connections to one server over HTTP/1.1,
 * so tabs in the background must not hold any, or a handful of them blocks the next one.
 */

import type { EventStream } from "./stream";

const REST_AFTER_MS = 1_000;

const watched = new Set<EventStream>();
let resting = false;
let timer: ReturnType<typeof setTimeout> | null = null;

export function keep(stream: EventStream): void {
  watched.add(stream);
  stream.start();
}

export function release(stream: EventStream): void {
  watched.delete(stream);
  stream.stop();
}

function onVisibility(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (document.hidden) {
    timer = setTimeout(() => {
      resting = true;
      for (const stream of watched) stream.stop();
    }, REST_AFTER_MS);
  } else if (resting) {
    resting = false;
    for (const stream of watched) stream.start();
  }
}

export function watchPresence(): void {
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", () => {
    for (const stream of watched) stream.again();
  });
}
