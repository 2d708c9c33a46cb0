/** Below an answer: which of several it is, and what can be done with it. */

import { computed } from "@preact/signals";
import { useMemo, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { saidIn } from "../composer/said_before";
import { models } from "../session/choices";
import type { Row } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { lastRows } from "../timeline/turns";
import { Button } from "../ui/button";
import { Copy } from "../ui/code";
import { plainText } from "../ui/markdown/plain_text";
import { attempt } from "../ui/notice";
import { replaceInFork, replaceTurn } from "./replacing";
import { canRead, readAloud, reading, stopReading } from "./speech";

const FORK = "fork";

interface EndedTurn {
  readonly turnId: string;
  readonly text: string;
  readonly variants: readonly string[];
  readonly isLast: boolean;
}

export function ReplyActions({ session, row }: { session: SessionStore; row: Row }) {
  const { turnId, key } = row;
  const ended = useMemo(() => computed(() => endedTurn(session, turnId, key)), [session, turnId, key]);
  return ended.value === null ? null : <Actions session={session} turn={ended.value} isFailed={row.kind === "end"} />;
}

/** Null if this row is not the last one of a turn that is over. */
function endedTurn(session: SessionStore, turnId: string | null, key: string): EndedTurn | null {
  if (turnId === null) return null;
  const last = lastRows(session).value;
  if (last.get(turnId) !== key || session.head.turn.value?.turnId === turnId) return null;
  const replies: string[] = [];
  let variants: readonly string[] = [];
  for (const name of session.shown.value) {
    const row = session.peek(name)?.turnId === turnId ? session.row(name).value : undefined;
    if (row?.kind === "step" && row.text) replies.push(row.text);
    if (row?.kind === "message" && row.variants.length > 0) variants = row.variants;
  }
  return { turnId, text: replies.join("\n\n"), variants, isLast: [...last.keys()].at(-1) === turnId };
}

function Actions({ session, turn, isFailed }: { session: SessionStore; turn: EndedTurn; isFailed: boolean }) {
  const { turnId, text } = turn;
  const isIdle = session.head.turn.value === null;
  const words = texts.reply;
  const regenerate = (): void => {
    const said = saidIn(session, turnId);
    if (said !== null) void attempt(() => replaceTurn(session, turnId, said));
  };
  return (
    <div class={turn.isLast ? "reply-actions is-last" : "reply-actions"} role="group" aria-label={words.actions}>
      <Variants session={session} turn={turn} disabled={!isIdle} />
      {text === "" ? null : (
        <>
          <Copy text={text} label={words.copyMarkdown} />
          <Copy text={() => plainText(text)} label={words.copyText} />
        </>
      )}
      {isFailed ? (
        <Button kind={turn.isLast ? "plain" : "quiet"} disabled={!isIdle} onClick={regenerate}>
          {words.tryAgain}
        </Button>
      ) : (
        <Button kind="quiet" disabled={!isIdle} onClick={regenerate}>
          {words.regenerate}
        </Button>
      )}
      <OtherWays session={session} turnId={turnId} disabled={!isIdle} />
      {canRead && text !== "" ? <ReadAloud turnId={turnId} text={text} /> : null}
    </div>
  );
}

/** Which answer this is, and the way to the others: the session goes on from the one that is shown. */
function Variants({ session, turn, disabled }: { session: SessionStore; turn: EndedTurn; disabled: boolean }) {
  const { variants, turnId } = turn;
  if (variants.length < 2) return null;
  const at = variants.indexOf(turnId);
  const arrow = (next: number, sign: string, label: string) => (
    <button
      type="button"
      class="button-quiet"
      aria-label={label}
      title={label}
      disabled={disabled || variants[next] === undefined}
      onClick={() => void attempt(() => keryx.restoreTurn(session.id, variants[next]!))}
    >
      {sign}
    </button>
  );
  return (
    <span class="reply-actions-variants">
      {arrow(at - 1, "‹", texts.reply.previous)}
      <span>{texts.reply.variant(at + 1, variants.length)}</span>
      {arrow(at + 1, "›", texts.reply.next)}
    </span>
  );
}

/** With another model, which the session then keeps, or in a fork. */
function OtherWays({ session, turnId, disabled }: { session: SessionStore; turnId: string; disabled: boolean }) {
  const now = session.head.settings.value.model;
  const choose = (way: string): void => {
    const said = saidIn(session, turnId);
    if (said === null) return;
    if (way === FORK) void replaceInFork(session, turnId, said);
    else
      void attempt(async () => {
        if (way !== now) await keryx.changeSession(session.id, { model: way });
        await replaceTurn(session, turnId, said);
      });
  };
  return <ModelSelect disabled={disabled} onChoose={choose} />;
}

/**
 * A button that becomes a list when it is pressed. Each row with a list of its own would hold an element for
 * every model, and the browser's layout holds on to rows with a list after they have left the page.
 */
function ModelSelect({ disabled, onChoose }: { disabled: boolean; onChoose: (way: string) => void }) {
  const words = texts.reply;
  const [open, setOpen] = useState(false);
  if (!open)
    return (
      <button
        type="button"
        class="button-quiet"
        aria-label={words.otherWays}
        title={words.otherWays}
        disabled={disabled}
        onClick={() => setOpen(true)}
      >
        {words.with}
      </button>
    );
  return (
    <select
      class="reply-actions-ways"
      aria-label={words.otherWays}
      ref={showList}
      onBlur={() => setOpen(false)}
      onChange={(event) => {
        setOpen(false);
        onChoose(event.currentTarget.value);
      }}
    >
      <option value="" disabled hidden selected>
        {words.with}
      </option>
      <optgroup label={words.models}>
        {models.value.models.map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
      </optgroup>
      <optgroup label={words.elsewhere}>
        <option value={FORK}>{words.inFork}</option>
      </optgroup>
    </select>
  );
}

/** A browser that cannot open a list by itself shows it closed, with the focus on it. */
function showList(list: HTMLSelectElement | null): void {
  list?.focus();
  list?.showPicker?.();
}

function ReadAloud({ turnId, text }: { turnId: string; text: string }) {
  const isRead = reading.value === turnId;
  return (
    <Button kind="quiet" pressed={isRead} onClick={() => (isRead ? stopReading() : readAloud(turnId, plainText(text)))}>
      {isRead ? texts.reply.stopReading : texts.reply.readAloud}
    </Button>
  );
}
