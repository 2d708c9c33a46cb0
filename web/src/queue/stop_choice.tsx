/** Stop while messages are queued: whether they are sent next, or come back into the message box. */

import { signal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import * as keryx from "../api/client";
import type { QueuedMessage } from "../api/types";
import type { SessionStore } from "../session/session_store";
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
      const withdrawn: QueuedMessage[] = [];
      for (const message of session.head.queue.peek()) {
        const answer = await keryx.withdraw(session.id, message.message_id);
        if (answer.withdrawn) withdrawn.push(message);
      }
      onWithdrawn(withdrawn);
      await keryx.cancelTurn(session.id, turnId);
    });
  };
  const count = session.head.queue.value.length;
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
