/** What the reader has unfolded, by name; rows come and go while scrolling and must not forget. */

import { signal, type Signal } from "@preact/signals";

const MOST = 2_000;
const unfolded = new Map<string, Signal<boolean>>();

export function unfoldedOf(name: string): Signal<boolean> {
  const known = unfolded.get(name);
  if (known !== undefined) return known;
  const made = signal(false);
  unfolded.set(name, made);
  if (unfolded.size > MOST) unfolded.delete(unfolded.keys().next().value!);
  return made;
}
