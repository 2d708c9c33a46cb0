/** What was said and waits: it can be changed, moved and taken back until it is delivered. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { QueuedMessage } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";

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
  const [editing, setEditing] = useState(false);
  const id = message.message_id;
  const named = (action: string): string => texts.queue.action(action, message.text);
  const move = (before: string | null): void => void attempt(() => keryx.changeMessage(sessionId, id, { before }));
  const files = message.attachments?.length ?? 0;
  if (editing) return <Editor sessionId={sessionId} message={message} onDone={() => setEditing(false)} />;
  return (
    // It takes the focus over from a button of it that is no longer there.
    <li tabIndex={-1}>
      {label ? <span class="queue-when">{label}</span> : null}
      <span class="queue-text">{message.text}</span>
      {files > 0 ? <small>{texts.queue.attachments(files)}</small> : null}
      <span class="queue-tools">
        <Button kind="quiet" label={named(texts.queue.edit)} onClick={() => setEditing(true)}>
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

function Editor({ sessionId, message, onDone }: { sessionId: string; message: QueuedMessage; onDone: () => void }) {
  const [text, setText] = useState(message.text);
  const save = async (): Promise<void> => {
    if (text === message.text) return onDone();
    if (await attempt(() => keryx.changeMessage(sessionId, message.message_id, { text }))) onDone();
  };
  return (
    <li class="is-editing">
      <textarea
        aria-label={texts.queue.text}
        rows={2}
        value={text}
        ref={(area) => area?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") {
            event.stopPropagation();
            onDone();
          } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            void save();
          }
        }}
      />
      <span class="queue-tools">
        <Button onClick={onDone}>{texts.cancel}</Button>
        <Button kind="main" disabled={text.trim() === ""} onClick={() => void save()}>
          {texts.save}
        </Button>
      </span>
    </li>
  );
}
