/** What the reader has unfolded, by name; rows come and go while scrolling and must not forget. */

import { type Signal, signal } from "@preact/signals";

/** Past this, what was longest not drawn is forgotten. */
const MOST = 1_000;
const unfolded = new Map<string, Signal<boolean>>();

export function unfoldedOf(name: string): Signal<boolean> {
  const found = unfolded.get(name) ?? signal(false);
  unfolded.delete(name);
  unfolded.set(name, found);
  if (unfolded.size > MOST) unfolded.delete(unfolded.keys().next().value!);
  return found;
}
