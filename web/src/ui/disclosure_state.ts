/** What the reader has unfolded, by name; rows come and go while scrolling and must not forget. */

import { type Signal, signal } from "@preact/signals";

/** Past this, what was longest not drawn is forgotten. */
const MOST = 1_000;
const disclosures = new Map<string, Signal<boolean>>();

export function disclosureOf(name: string, isOpen = false): Signal<boolean> {
  const open = disclosures.get(name) ?? signal(isOpen);
  disclosures.delete(name);
  disclosures.set(name, open);
  if (disclosures.size > MOST) disclosures.delete(disclosures.keys().next().value!);
  return open;
}
