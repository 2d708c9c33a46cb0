/**
 * Streams rest while nobody looks. Browsers allow few connections to one server over HTTP/1.1,
 * so tabs in the background must not hold any, or a handful of them blocks the next one. What
 * concerns all sessions one tab goes on reading for all of them, and that may be one that rests.
 */

import { browserLocks, ConnectionSlot } from "./connection_slots";
import type { EventStream } from "./event_stream";

const REST_AFTER_MS = 1_000;

/** Each with its slot; without one it goes on while nobody looks. */
const watched = new Map<EventStream, Pick<ConnectionSlot, "take" | "leave"> | null>();
const listeners = new Set<(resting: boolean) => void>();
let resting = false;
let timer: ReturnType<typeof setTimeout> | null = null;

/** Always: whether or not somebody looks, and whoever else reads. */
export function keepStream(stream: EventStream, always = false): void {
  if (always) {
    watched.set(stream, null);
    return stream.start();
  }
  const slot = slotOf(stream);
  watched.set(stream, slot);
  if (!resting) slot.take();
}

export function releaseStream(stream: EventStream): void {
  watched.get(stream)?.leave();
  watched.delete(stream);
  stream.stop();
}

/** Where slots cannot be seen, nobody waits for one. */
function slotOf(stream: EventStream): Pick<ConnectionSlot, "take" | "leave"> {
  const locks = browserLocks();
  const [open, close] = [() => stream.start(), () => stream.stop()];
  return locks === null ? { take: open, leave: close } : new ConnectionSlot(open, close, locks);
}

export const isResting = (): boolean => resting;

/** Tells whenever a rest begins or ends; returns how to end that. */
export function onRest(tell: (resting: boolean) => void): () => void {
  listeners.add(tell);
  return () => void listeners.delete(tell);
}

function onVisibility(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (document.hidden) timer = setTimeout(() => rest(true), REST_AFTER_MS);
  else if (resting) rest(false);
}

function rest(now: boolean): void {
  resting = now;
  for (const slot of watched.values()) {
    if (now) slot?.leave();
    else slot?.take();
  }
  for (const tell of listeners) tell(now);
}

export function watchPresence(): void {
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", () => {
    for (const stream of watched.keys()) stream.again();
  });
  if (document.hidden) onVisibility();
}
