/**
 * Streams rest while nobody looks. Browsers allow few connections to one server over HTTP/1.1,
 * so tabs in the background must not hold any, or a handful of them blocks the next one. What
 * concerns all sessions one tab goes on reading for all of them, and that may be one that rests.
 */

import { hall, Seat } from "./connection_slots";
import type { EventStream } from "./event_stream";

const REST_AFTER_MS = 1_000;

/** Each with its seat; without one it goes on while nobody looks. */
const watched = new Map<EventStream, Pick<Seat, "take" | "leave"> | null>();
const told = new Set<(resting: boolean) => void>();
let resting = false;
let timer: ReturnType<typeof setTimeout> | null = null;

/** Always: whether or not somebody looks, and whoever else reads. */
export function keep(stream: EventStream, always = false): void {
  if (always) {
    watched.set(stream, null);
    return stream.start();
  }
  const seat = seatOf(stream);
  watched.set(stream, seat);
  if (!resting) seat.take();
}

export function release(stream: EventStream): void {
  watched.get(stream)?.leave();
  watched.delete(stream);
  stream.stop();
}

/** Where seats cannot be seen, nobody waits for one. */
function seatOf(stream: EventStream): Pick<Seat, "take" | "leave"> {
  const around = hall();
  const [sit, rise] = [() => stream.start(), () => stream.stop()];
  return around === null ? { take: sit, leave: rise } : new Seat(sit, rise, around);
}

export const isResting = (): boolean => resting;

/** Tells whenever a rest begins or ends; returns how to end that. */
export function onRest(tell: (resting: boolean) => void): () => void {
  told.add(tell);
  return () => void told.delete(tell);
}

function onVisibility(): void {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  if (document.hidden) timer = setTimeout(() => rest(true), REST_AFTER_MS);
  else if (resting) rest(false);
}

function rest(now: boolean): void {
  resting = now;
  for (const seat of watched.values()) {
    if (now) seat?.leave();
    else seat?.take();
  }
  for (const tell of told) tell(now);
}

export function watchPresence(): void {
  document.addEventListener("visibilitychange", onVisibility);
  window.addEventListener("online", () => {
    for (const stream of watched.keys()) stream.again();
  });
  if (document.hidden) onVisibility();
}
