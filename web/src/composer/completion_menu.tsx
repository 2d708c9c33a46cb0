/** What can be completed, above the field; the keys are the field's. */

import { useEffect, useRef } from "preact/hooks";
import { texts } from "../texts";
import type { Completion, Suggestion } from "./completion";

export const MENU = "suggestions";
export const optionId = (at: number): string => `${MENU}-${at}`;

export function CompletionMenu({
  completion,
  onTake,
}: {
  completion: Completion;
  onTake: (suggestion: Suggestion) => void;
}) {
  const box = useRef<HTMLUListElement>(null);
  const list = completion.list.value;
  const at = completion.at.value;
  useEffect(() => {
    box.current?.children[at]?.scrollIntoView({ block: "nearest" });
  }, [at, list]);
  if (list.length === 0) {
    return completion.says.value ? <p class="completion-menu-empty text-dim">{completion.says.value}</p> : null;
  }
  return (
    <ul ref={box} id={MENU} class="completion-menu" role="listbox" aria-label={texts.commands.label} tabIndex={0}>
      {list.map((suggestion, index) => (
        <li
          key={suggestion.key}
          id={optionId(index)}
          role="option"
          aria-selected={index === at}
          aria-disabled={completion.isOld.value}
          class={index === at ? "is-chosen" : ""}
          // The field keeps the focus, or a phone would take its keyboard away.
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => {
            if (!completion.isOld.peek()) onTake(suggestion);
          }}
        >
          <b dir="auto">{suggestion.name}</b>
          <span class="text-dim" dir="auto">
            {suggestion.about}
          </span>
        </li>
      ))}
    </ul>
  );
}
