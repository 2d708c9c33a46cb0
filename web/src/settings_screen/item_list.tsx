/** A list of named things that comes from the server: while it loads, if there are none, and if it is refused. */

import type { ComponentChildren } from "preact";
import { texts } from "../texts";
import { Refusal } from "../ui/refusal";
import type { Answer } from "../ui/use_request";

interface Props<T> {
  answer: Answer<unknown>;
  /** What the answer holds; null while there is none. */
  items: readonly T[] | null;
  label: string;
  none: string;
  children: (item: T) => ComponentChildren;
}

export function ItemList<T>({ answer: { problem }, items, label, none, children }: Props<T>) {
  return (
    <>
      {problem === null ? null : <Refusal problem={problem} />}
      {items === null ? (
        problem === null ? (
          <p class="text-dim">{texts.loading}</p>
        ) : null
      ) : items.length === 0 ? (
        <p role="status">{none}</p>
      ) : (
        <ul class="settings-screen-items" aria-label={label}>
          {items.map(children)}
        </ul>
      )}
    </>
  );
}
