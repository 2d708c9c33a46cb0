/** What a container called, read from the blob that its end names; once, and kept for a while. */

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { nestedCalls } from "../api/client";
import type { NestedCalls } from "../api/types";

const MOST_KEPT = 60;
const cache = new Map<string, Signal<NestedCalls | null>>();
const UNKNOWN: NestedCalls = { calls: [], sums: [] };

/** Null while it is read; nothing is listed if it cannot be. */
export function storedNested(sessionId: string, blob: string): ReadonlySignal<NestedCalls | null> {
  const key = `${sessionId} ${blob}`;
  const cached = cache.get(key);
  if (cached !== undefined) return cached;
  const calls = signal<NestedCalls | null>(null);
  cache.set(key, calls);
  if (cache.size > MOST_KEPT) cache.delete(cache.keys().next().value!);
  nestedCalls(sessionId, blob).then(
    (answer) => {
      calls.value = answer;
    },
    () => {
      calls.value = UNKNOWN;
      cache.delete(key);
    },
  );
  return calls;
}
