/** A sent message as it is edited: sent again, it takes the place of what it said before. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { saidIn } from "../composer/said_before";
import type { MessageRow } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { replaceTurn } from "./replacing";

/** On a touch screen Enter makes a new line, as in the message box. */
function isSending(event: KeyboardEvent): boolean {
  const isEnter = event.key === "Enter" && !event.shiftKey && !event.isComposing;
  return isEnter && (event.ctrlKey || event.metaKey || matchMedia("(hover: hover)").matches);
}

export function MessageEditor({
  session,
  row,
  onDone,
}: {
  session: SessionStore;
  row: MessageRow;
  onDone: () => void;
}) {
  const [text, setText] = useState(row.text);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current!;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  }, [text]);
  useLayoutEffect(() => {
    field.current!.focus();
    field.current!.setSelectionRange(row.text.length, row.text.length);
  }, []);
  const attachments = saidIn(session, row.turnId!)?.attachments ?? [];
  const isReady = (text.trim() !== "" || attachments.length > 0) && session.head.turn.value === null;
  const send = (): void => {
    if (!isReady) return;
    void replaceTurn(session, row.turnId!, { text, attachments });
    onDone();
  };
  return (
    <form
      class="message-editor"
      aria-label={texts.turn.edit}
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          onDone();
        } else if (isSending(event) && event.target === field.current) {
          event.preventDefault();
          send();
        }
      }}
    >
      <textarea
        ref={field}
        dir="auto"
        aria-label={texts.turn.editText}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <p class="text-dim">{texts.turn.editNote}</p>
      <div class="layout-buttons">
        <Button keys="Esc" onClick={onDone}>
          {texts.cancel}
        </Button>
        <Button kind="main" keys="↵" type="submit" disabled={!isReady}>
          {texts.composer.send}
        </Button>
      </div>
    </form>
  );
}
