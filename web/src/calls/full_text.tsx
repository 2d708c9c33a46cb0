/** The arguments of a call, all of them: what an event has no room for is read when it is looked at. */

import { type Signal, signal } from "@preact/signals";
import { blobText } from "../api/client";
import type { Call } from "../session/rows";
import { Arguments } from "./arguments";

const MOST_KEPT = 20;
const cache = new Map<string, Signal<string | null>>();

/** Null while it is read, and if it cannot be: then it is tried again by the next who looks. */
function stored(sessionId: string, blob: string): Signal<string | null> {
  const key = `${sessionId} ${blob}`;
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const loaded = signal<string | null>(null);
  cache.set(key, loaded);
  if (cache.size > MOST_KEPT) cache.delete(cache.keys().next().value!);
  blobText(sessionId, blob).then(
    (text) => {
      loaded.value = text;
    },
    () => void cache.delete(key),
  );
  return loaded;
}

interface AskedCall {
  readonly arguments?: string;
  readonly arguments_blob?: string | null;
}

/** What a call would get that waits for a person. */
export function AskedArguments({ approval, sessionId }: { approval: AskedCall; sessionId: string }) {
  const { arguments: text = "", arguments_blob: blob = null } = approval;
  const whole = blob === null ? text : stored(sessionId, blob).value;
  return text === "" ? null : <Arguments text={whole ?? text} growing={whole === null} />;
}

export function FullArguments({ call, sessionId }: { call: Call; sessionId: string }) {
  const { arguments: text, argumentsBlob: blob } = call;
  const whole = blob === null ? text : stored(sessionId, blob).value;
  // Only the beginning reads as nothing else than text.
  return <Arguments text={whole ?? text} growing={call.phase === "writing" || whole === null} />;
}
