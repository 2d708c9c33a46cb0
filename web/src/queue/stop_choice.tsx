/** Stop while messages are queued: whether they are sent next, or come back into the message box. */

import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import * as keryx from "../api/client";
import type { QueuedMessage } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";

/** The turn about which somebody is asked, by session. */
const asking = signal<{ readonly sessionId: string; readonly turnId: string } | null>(null);

/** Stops the turn; if messages wait behind it, only once the person has chosen what becomes of them. */
export function stopTurn(session: SessionStore): void {
  const turn = session.head.turn.peek();
  if (turn === null || turn.cancelling) return;
  if (session.head.queue.peek().length > 0) asking.value = { sessionId: session.id, turnId: turn.turnId };
  else void attempt(() => keryx.cancelTurn(session.id, turn.turnId));
}

interface Props {
  session: SessionStore;
  /** Takes what was queued and is not sent. */
  onWithdrawn: (messages: readonly QueuedMessage[]) => void;
}

export function StopChoice({ session, onWithdrawn }: Props) {
  const turn = session.head.turn.value;
  const isAsked = asking.value?.sessionId === session.id && asking.value.turnId === turn?.turnId;
  return isAsked && !turn.cancelling ? <Card session={session} turnId={turn.turnId} onWithdrawn={onWithdrawn} /> : null;
}

/** What was withdrawn comes back also if something else could not be; an edit comes back in place of the old text. */
async function withdrawAll(session: SessionStore, onWithdrawn: Props["onWithdrawn"]): Promise<void> {
  const unsaved = unsavedTexts(session.id);
  const withdrawn: QueuedMessage[] = [];
  try {
    for (const message of session.head.queue.peek()) {
      const name = textName.queued(message.message_id);
      const text = unsaved.get(name) ?? message.text;
      const withdraw = async (): Promise<boolean> => (await keryx.withdraw(session.id, message.message_id)).withdrawn;
      if (await unsaved.send(name, withdraw)) withdrawn.push({ ...message, text });
    }
  } finally {
    onWithdrawn(withdrawn);
  }
}

function Card({ session, turnId, onWithdrawn }: Props & { turnId: string }) {
  const card = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const before = document.activeElement;
    card.current?.querySelector("button")?.focus();
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  const close = (): void => {
    asking.value = null;
  };
  const stop = (): void => {
    close();
    void attempt(() => keryx.cancelTurn(session.id, turnId));
  };
  const stopAll = async (): Promise<void> => {
    close();
    await attempt(async () => {
      await withdrawAll(session, onWithdrawn);
      await keryx.cancelTurn(session.id, turnId);
    });
  };
  const count = session.head.queue.value.length;
  useEffect(() => {
    // The last one has gone meanwhile (removed a moment before Stop was pressed): nothing is left to choose.
    if (count === 0) stop();
  }, [count]);
  const words = texts.queue.stopping;
  return (
    <div
      ref={card}
      class="stop-choice"
      role="group"
      aria-label={words.title(count)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        close();
      }}
    >
      <span>{words.title(count)}</span>
      <div class="layout-buttons">
        <Button onClick={stop}>{words.goOn(count)}</Button>
        <Button kind="stop" onClick={() => void stopAll()}>
          {words.stopAll}
        </Button>
      </div>
    </div>
  );
}
