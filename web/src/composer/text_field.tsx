/** The text field: it grows with its text, completes what is typed, and its keys send. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { texts } from "../texts";
import { hasKeyboard } from "../ui/keyboard";
import type { Choices, Completion, Suggestion } from "./completion";
import { CompletionMenu, MENU, optionId } from "./completion_menu";
import type { ComposerState } from "./composer_state";

/** Characters from which on a pasted text becomes a file: nobody wants to scroll past it. */
export const LARGE_PASTE = 5_000;

export type Sending = "queue" | "steer" | "after";

interface Props {
  composing: ComposerState;
  completion: Completion;
  choices: () => Choices;
  running: boolean;
  onSend: (how: Sending) => void;
  onStop: () => void;
  /** False: it was not opened by a person just now, so it takes the focus from nobody. */
  takesFocus: boolean;
}

export function TextField({ composing, completion, choices, running, onSend, onStop, takesFocus }: Props) {
  const field = useRef<HTMLTextAreaElement>(null);
  /** Where the caret goes once the text that was put in is drawn. */
  const caret = useRef<number | null>(null);
  const text = composing.text.value;
  useLayoutEffect(() => {
    const area = field.current!;
    area.style.height = "auto";
    // To ask how high it is makes the browser lay out the whole page, and nothing is one line high.
    if (text !== "") area.style.height = `${area.scrollHeight}px`;
    if (caret.current !== null) area.setSelectionRange(caret.current, caret.current);
    caret.current = null;
  }, [text]);
  useLayoutEffect(() => {
    // At once, for the next key may be meant for it. A keyboard that slides in by itself would hide what was opened.
    if (hasKeyboard() && (takesFocus || document.activeElement === document.body)) field.current?.focus();
  }, [composing]);
  useEffect(() => {
    // Drawn later than it was typed: by now there may be more.
    if (composing.text.peek() === "") completion.look("", 0, choices());
  }, [text]);
  const look = (): void => completion.look(composing.text.peek(), field.current!.selectionStart, choices());
  const take = (suggestion: Suggestion, sends: boolean): void => {
    const area = field.current!;
    const next = completion.complete(suggestion, area.value, area.selectionEnd);
    caret.current = next.caret;
    composing.type(next.text);
    if (suggestion.followUp === "more") return completion.look(next.text, next.caret, choices());
    completion.close(next.text);
    if (suggestion.followUp === "done" && sends) onSend("queue");
  };
  const onEscape = (event: KeyboardEvent): void => {
    if (composing.postponed.peek() !== null) composing.takeBack();
    else if (running) onStop();
    else return;
    event.preventDefault();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (completion.list.peek().length > 0 && onMenuKey(event, completion, take, composing.text.peek())) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey && (hasKeyboard() || isChord(event))) {
      event.preventDefault();
      onSend(running ? sendingOf(event) : "queue");
    } else if (event.key === "Escape") onEscape(event);
  };
  const open = completion.list.value.length > 0;
  return (
    <>
      <CompletionMenu completion={completion} onTake={(suggestion) => take(suggestion, true)} />
      <textarea
        id="message"
        ref={field}
        rows={1}
        dir="auto"
        aria-label={texts.composer.label}
        aria-autocomplete="list"
        aria-controls={open ? MENU : undefined}
        aria-activedescendant={open ? optionId(completion.at.value) : undefined}
        placeholder={running ? texts.composer.placeholderRunning : texts.composer.placeholder}
        value={text}
        onBeforeInput={(event) => composing.changesFrom(event.currentTarget.selectionStart)}
        onInput={(event) => {
          composing.type(event.currentTarget.value);
          look();
        }}
        onClick={look}
        onKeyUp={(event) => {
          if (/^(Arrow(Left|Right)|Home|End)$/.test(event.key)) look();
        }}
        onBlur={() => completion.close(composing.text.peek())}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          const pasted = event.clipboardData?.getData("text/plain") ?? "";
          if (files.length === 0 && pasted.length >= LARGE_PASTE) files.push(textFile(pasted));
          if (files.length === 0) return;
          event.preventDefault();
          composing.attachments.add(files);
        }}
        onKeyDown={onKey}
      />
    </>
  );
}

export function textFile(text: string): File {
  return new File([text], texts.composer.pastedText, { type: "text/plain" });
}

const isChord = (event: KeyboardEvent): boolean => event.ctrlKey || event.metaKey || event.altKey;

/** What Enter means while a turn runs. */
function sendingOf(event: KeyboardEvent): Sending {
  if (event.ctrlKey || event.metaKey) return "steer";
  return event.altKey ? "after" : "queue";
}

/** Whether the key was one of the menu's. */
function onMenuKey(
  event: KeyboardEvent,
  completion: Completion,
  take: (suggestion: Suggestion, sends: boolean) => void,
  text: string,
): boolean {
  const chosen = completion.chosen;
  switch (event.key) {
    case "ArrowDown":
      completion.move(1);
      return true;
    case "ArrowUp":
      completion.move(-1);
      return true;
    case "Escape":
      completion.close(text);
      return true;
    case "Tab":
      if (event.shiftKey || chosen === null) return false;
      if (!completion.isOld.peek()) take(chosen, false);
      return true;
    case "Enter":
      if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || chosen === null) return false;
      // An Enter that was meant for the menu must not send the message.
      if (!completion.isOld.peek()) take(chosen, true);
      return true;
    default:
      return false;
  }
}
