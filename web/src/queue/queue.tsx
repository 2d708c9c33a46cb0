/** What was said and waits: it can be changed, moved and taken back until it is delivered. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { QueuedMessage } from "../api/types";
import { tooLongProblem } from "../session/message_length";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { isSubmitKey } from "../ui/keyboard";
import { attempt } from "../ui/notice";
import { Refusal } from "../ui/refusal";

export function Queue({ session }: { session: SessionStore }) {
  const queue = session.head.queue.value;
  const steers = session.head.steers.value;
  if (queue.length + steers.length === 0) return null;
  return (
    <ol class="queue" aria-label={texts.queue.label}>
      {steers.map((message) => (
        <Item key={message.message_id} sessionId={session.id} message={message} label={texts.queue.afterStep} />
      ))}
      {queue.map((message, index) => (
        <Item
          key={message.message_id}
          sessionId={session.id}
          message={message}
          label={index === 0 ? texts.queue.next : ""}
          // Before the one above it; or before the one after the next, which may be the end.
          up={index > 0 ? queue[index - 1]!.message_id : undefined}
          down={index < queue.length - 1 ? (queue[index + 2]?.message_id ?? null) : undefined}
        />
      ))}
    </ol>
  );
}

interface ItemProps {
  sessionId: string;
  message: QueuedMessage;
  label: string;
  up?: string | undefined;
  down?: string | null | undefined;
}

function Item({ sessionId, message, label, up, down }: ItemProps) {
  const id = message.message_id;
  const unsaved = unsavedTexts(sessionId);
  const edited = unsaved.get(textName.queued(id));
  /** Whether the person asked for the editor here and now: else it takes the focus from nobody. */
  const isOpened = useRef(false);
  const edit = (): void => {
    isOpened.current = true;
    unsaved.put(textName.queued(id), message.text);
  };
  const named = (action: string): string => texts.queue.action(action, message.text);
  const move = (before: string | null): void => void attempt(() => keryx.changeMessage(sessionId, id, { before }));
  const files = message.attachments?.length ?? 0;
  if (edited !== undefined)
    return <Editor sessionId={sessionId} message={message} text={edited} takesFocus={isOpened.current} />;
  return (
    // It takes the focus over from a button of it that is no longer there.
    <li tabIndex={-1}>
      {label ? <span class="queue-when">{label}</span> : null}
      <span class="queue-text" dir="auto">
        {message.text}
      </span>
      {files > 0 ? <small>{texts.queue.attachments(files)}</small> : null}
      <span class="queue-tools">
        <Button kind="quiet" label={named(texts.queue.edit)} onClick={edit}>
          {texts.queue.edit}
        </Button>
        {up === undefined ? null : (
          <Button kind="quiet" label={named(texts.queue.up)} onClick={() => move(up)}>
            <span aria-hidden="true">↑</span>
          </Button>
        )}
        {down === undefined ? null : (
          <Button kind="quiet" label={named(texts.queue.down)} onClick={() => move(down)}>
            <span aria-hidden="true">↓</span>
          </Button>
        )}
        <button
          type="button"
          class="button-x"
          aria-label={named(texts.queue.remove)}
          onClick={() => void attempt(() => keryx.withdraw(sessionId, id))}
        >
          ✕
        </button>
      </span>
    </li>
  );
}

interface EditorProps {
  sessionId: string;
  message: QueuedMessage;
  text: string;
  takesFocus: boolean;
}

function Editor({ sessionId, message, text, takesFocus }: EditorProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    if (takesFocus) field.current!.focus();
  }, []);
  const id = message.message_id;
  const name = textName.queued(id);
  const unsaved = unsavedTexts(sessionId);
  const busy = unsaved.isSending(name);
  const close = (): void => {
    if (!busy) unsaved.drop(name);
  };
  const save = async (): Promise<void> => {
    if (text === message.text) return close();
    const refused = tooLongProblem(text, texts.composer.tooLongHere);
    setProblem(refused);
    if (refused !== null || busy || text.trim() === "") return;
    try {
      await unsaved.send(name, () => keryx.changeMessage(sessionId, id, { text }));
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return (
    <li class="is-editing">
      <textarea
        dir="auto"
        aria-label={texts.queue.text}
        rows={2}
        readOnly={busy}
        value={text}
        ref={field}
        onInput={(event) => unsaved.put(name, event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            close();
          } else if (isSubmitKey(event)) {
            event.preventDefault();
            void save();
          }
        }}
      />
      {problem === null ? null : <Refusal problem={problem} lead={texts.queue.notSaved} />}
      <span class="queue-tools">
        <Button busy={busy} onClick={close}>
          {texts.cancel}
        </Button>
        <Button kind="main" busy={busy} disabled={text.trim() === ""} onClick={() => void save()}>
          {texts.save}
        </Button>
      </span>
    </li>
  );
}
