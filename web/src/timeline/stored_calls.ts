/** What a container called, read from the blob that its end names; once, and kept for a while. */

import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { nestedCalls } from "../api/client";
import type { NestedCalls } from "../api/shapes";

const MOST_KEPT = 60;
const kept = new Map<string, Signal<NestedCalls | null>>();
const UNKNOWN: NestedCalls = { calls: [], sums: [] };

/** Null while it is read; nothing is listed if it cannot be. */
export function storedNested(sessionId: string, blob: string): ReadonlySignal<NestedCalls | null> {
  const key = `${sessionId} ${blob}`;
  const known = kept.get(key);
  if (known !== undefined) return known;
  const made = signal<NestedCalls | null>(null);
  kept.set(key, made);
  if (kept.size > MOST_KEPT) kept.delete(kept.keys().next().value!);
  nestedCalls(sessionId, blob).then(
    (told) => {
      made.value = told;
    },
    () => {
      made.value = UNKNOWN;
      kept.delete(key);
    },
  );
  return made;
}
