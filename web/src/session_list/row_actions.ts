/**
 * What is being done with rows of the list: a menu that is open, a title that is typed. A row moves to
 * another group when its turn begins or ends, so this is kept outside of the rows.
 */

import { signal } from "@preact/signals";

export type RowAction =
  | { readonly kind: "choosing" | "deleting" }
  | { readonly kind: "renaming"; readonly title: string };

const actions = signal<ReadonlyMap<string, RowAction>>(new Map());

/** A session is a row of the days, and of the folder of each of its tags. */
export const rowOf = (sessionId: string, folder: string | null): string => JSON.stringify([sessionId, folder]);

export const actionOf = (row: string): RowAction | null => actions.value.get(row) ?? null;

export function act(row: string, action: RowAction | null): void {
  const next = new Map(actions.peek());
  if (action === null) next.delete(row);
  else next.set(row, action);
  actions.value = next;
}

/** Called when a session leaves the list; one that is imported later may have its id. */
export function dropActions(sessionId: string): void {
  const isOther = ([row]: [string, RowAction]): boolean =>
    (JSON.parse(row) as [string, string | null])[0] !== sessionId;
  const left = new Map([...actions.peek()].filter(isOther));
  if (left.size < actions.peek().size) actions.value = left;
}
