/** The text field: it grows with its text, completes what is typed, and its keys send. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Composing } from "../state/composing";
import { texts } from "../texts";
import { Menu, MENU, optionId } from "./menu";
import type { Choices, Suggest, Suggestion } from "./suggest";

export type Sending = "queue" | "steer" | "after";

interface Props {
  composing: Composing;
  suggest: Suggest;
  choices: () => Choices;
  running: boolean;
  onSend: (how: Sending) => void;
  onStop: () => void;
}

export function Field({ composing, suggest, choices, running, onSend, onStop }: Props) {
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
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [composing]);
  useEffect(() => {
    // Drawn later than it was typed: by now there may be more.
    if (composing.text.peek() === "") suggest.look("", 0, choices());
  }, [text]);
  const look = (): void => suggest.look(composing.text.peek(), field.current!.selectionStart, choices());
  const take = (suggestion: Suggestion, sends: boolean): void => {
    const area = field.current!;
    const next = suggest.taken(suggestion, area.value, area.selectionEnd);
    caret.current = next.caret;
    composing.type(next.text);
    if (suggestion.then === "more") return suggest.look(next.text, next.caret, choices());
    suggest.close(next.text);
    if (suggestion.then === "done" && sends) onSend("queue");
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    if (suggest.list.peek().length > 0 && onMenuKey(event, suggest, take, composing.text.peek())) {
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey) {
      event.preventDefault();
      if (!running) onSend("queue");
      else onSend(event.ctrlKey || event.metaKey ? "steer" : event.altKey ? "after" : "queue");
    } else if (event.key === "Escape" && composing.postponed.peek() !== null) {
      event.preventDefault();
      composing.takeBack();
    } else if (event.key === "Escape" && running) {
      event.preventDefault();
      onStop();
    }
  };
  const open = suggest.list.value.length > 0;
  return (
    <>
      <Menu suggest={suggest} onTake={(suggestion) => take(suggestion, true)} />
      <textarea
        id="message"
        ref={field}
        rows={1}
        aria-label={texts.composer.label}
        aria-autocomplete="list"
        aria-controls={open ? MENU : undefined}
        aria-activedescendant={open ? optionId(suggest.at.value) : undefined}
        placeholder={running ? texts.composer.placeholderRunning : texts.composer.placeholder}
        value={text}
        onInput={(event) => {
          composing.type(event.currentTarget.value);
          look();
        }}
        onClick={look}
        onKeyUp={(event) => {
          if (/^(Arrow(Left|Right)|Home|End)$/.test(event.key)) look();
        }}
        onBlur={() => suggest.close(composing.text.peek())}
        onPaste={(event) => {
          const files = [...(event.clipboardData?.files ?? [])];
          if (files.length === 0) return;
          event.preventDefault();
          composing.attachments.add(files);
        }}
        onKeyDown={onKey}
      />
    </>
  );
}

/** Whether the key was one of the menu's. */
function onMenuKey(
  event: KeyboardEvent,
  suggest: Suggest,
  take: (suggestion: Suggestion, sends: boolean) => void,
  text: string,
): boolean {
  const chosen = suggest.chosen;
  switch (event.key) {
    case "ArrowDown":
      suggest.move(1);
      return true;
    case "ArrowUp":
      suggest.move(-1);
      return true;
    case "Escape":
      suggest.close(text);
      return true;
    case "Tab":
      if (event.shiftKey || chosen === null) return false;
      take(chosen, false);
      return true;
    case "Enter":
      if (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey || chosen === null) return false;
      take(chosen, true);
      return true;
    default:
      return false;
  }
}
