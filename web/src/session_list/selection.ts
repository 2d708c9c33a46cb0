/** Which sessions of the list are selected, to do something with all of them. */

import { batch, signal } from "@preact/signals";

export const selecting = signal(false);
export const selected = signal<ReadonlySet<string>>(new Set());
/** Where a range begins: what was selected last by itself. */
let anchor: string | null = null;

export function startSelecting(id: string | null = null): void {
  anchor = id;
  batch(() => {
    selecting.value = true;
    selected.value = new Set(id === null ? [] : [id]);
  });
}

export function stopSelecting(): void {
  anchor = null;
  batch(() => {
    selecting.value = false;
    selected.value = new Set();
  });
}

/** A click on one; with Shift, on all from the last one to it, in the order of the screen. */
export function select(id: string, shown: readonly string[], range: boolean): void {
  if (range && anchor !== null) {
    selected.value = new Set([...selected.peek(), ...between(shown, anchor, id)]);
    return;
  }
  anchor = id;
  const next = new Set(selected.peek());
  if (!next.delete(id)) next.add(id);
  selected.value = next;
}

export function selectAll(shown: readonly string[]): void {
  selected.value = new Set(shown);
}

/** All from one to another, whichever comes first; without the one, only the other. Pure. */
export function between(shown: readonly string[], from: string, to: string): readonly string[] {
  const [start, end] = [shown.indexOf(from), shown.indexOf(to)];
  if (start < 0 || end < 0) return [to];
  return shown.slice(Math.min(start, end), Math.max(start, end) + 1);
}
