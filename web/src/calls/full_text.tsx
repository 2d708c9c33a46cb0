/** The arguments of a call, all of them: what an event has no room for is read when it is looked at. */

import { type Signal, signal } from "@preact/signals";
import { blobText } from "../api/client";
import type { Call } from "../session/rows";
import { Arguments } from "./arguments";

const MOST_KEPT = 20;
const kept = new Map<string, Signal<string | null>>();

/** Null while it is read, and if it cannot be: then it is tried again by the next who looks. */
function stored(sessionId: string, blob: string): Signal<string | null> {
  const key = `${sessionId} ${blob}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const made = signal<string | null>(null);
  kept.set(key, made);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  blobText(sessionId, blob).then(
    (text) => {
      made.value = text;
    },
    () => void kept.delete(key),
  );
  return made;
}

export function WholeArguments({ call, sessionId }: { call: Call; sessionId: string }) {
  const { arguments: text, argumentsBlob: blob } = call;
  const whole = blob === null ? text : stored(sessionId, blob).value;
  // Only the beginning reads as nothing else than text.
  return <Arguments text={whole ?? text} growing={call.phase === "writing" || whole === null} />;
}
