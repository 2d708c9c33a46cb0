/** What can be done with a turn, at the message that began it: replay it, fork from it, undo it. */

import { useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import { asProblem, type Problem } from "../api/problem";
import { composerOf } from "../composer/composers";
import { saidIn } from "../composer/said_before";
import { go } from "../navigation/route";
import { replayed } from "../session/replayed_turn";
import type { MessageRow } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Copy } from "../ui/code";
import { Dialog } from "../ui/dialog";
import { disclosureOf } from "../ui/disclosure_state";
import { attempt } from "../ui/notice";
import { Refusal } from "../ui/refusal";
import { startEditing } from "./message_editor";

export function TurnMenu({ session, row }: { session: SessionStore; row: MessageRow }) {
  const open = disclosureOf(`turn ${row.key}`);
  const dots = useRef<HTMLButtonElement>(null);
  const name = texts.turn.actions;
  return (
    <>
      <button
        ref={dots}
        type="button"
        class="turn-menu-dots"
        aria-expanded={open.value}
        aria-label={name}
        title={name}
        onClick={() => {
          open.value = !open.value;
        }}
      />
      {open.value ? (
        <Actions
          session={session}
          row={row}
          onDone={() => {
            open.value = false;
            dots.current?.focus();
          }}
        />
      ) : null}
    </>
  );
}

function Actions({ session, row, onDone }: { session: SessionStore; row: MessageRow; onDone: () => void }) {
  const [undoing, setUndoing] = useState(false);
  const turnId = row.turnId!;
  // A turn that is under way has no end yet to fork from, and is stopped rather than undone.
  const over = session.head.turn.value?.turnId !== turnId;
  const fork = async (): Promise<void> => {
    const id = newSessionId();
    if (await attempt(() => keryx.fork(session.id, turnId, id))) go(id);
  };
  return (
    <div
      class="turn-menu-actions"
      role="group"
      aria-label={texts.turn.actions}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || undoing) return;
        event.preventDefault();
        onDone();
      }}
    >
      <Copy text={row.text} />
      <Button
        kind="quiet"
        disabled={session.head.turn.value !== null}
        onClick={() => {
          onDone();
          startEditing(session, row);
        }}
      >
        {texts.turn.edit}
      </Button>
      <Button
        kind="quiet"
        disabled={!over}
        onClick={() => {
          replayed.value = { sessionId: session.id, turnId, message: row };
        }}
      >
        {texts.turn.replay}
      </Button>
      <Button kind="quiet" disabled={!over} onClick={() => void fork()}>
        {texts.turn.fork}
      </Button>
      <Button kind="quiet" disabled={!over} onClick={() => setUndoing(true)}>
        {texts.turn.undo}
      </Button>
      {undoing ? (
        <Undoing
          session={session}
          turnId={turnId}
          onClose={(done) => {
            setUndoing(false);
            if (done) onDone();
          }}
        />
      ) : null}
    </div>
  );
}

interface UndoingProps {
  session: SessionStore;
  turnId: string;
  onClose: (done: boolean) => void;
}

function Undoing({ session, turnId, onClose }: UndoingProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const undo = async (files: boolean): Promise<void> => {
    setBusy(true);
    try {
      const said = saidIn(session, turnId);
      await keryx.undo(session.id, turnId, files);
      if (said !== null) composerOf(session.id).putBack(said);
      onClose(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const { turn } = texts;
  return (
    <Dialog title={turn.undoTitle} onClose={() => onClose(false)}>
      <h2>{turn.undoTitle}</h2>
      <p>{turn.undoBody}</p>
      {problem === null ? null : <Refusal problem={problem} lead={turn.refused} />}
      <div class="layout-buttons">
        <Button onClick={() => onClose(false)}>{texts.cancel}</Button>
        {problem?.kind === "conflict" ? (
          <Button kind="stop" busy={busy} onClick={() => void undo(false)}>
            {turn.undoKeepFiles}
          </Button>
        ) : (
          <Button kind="stop" busy={busy} onClick={() => void undo(true)}>
            {turn.undoConfirm}
          </Button>
        )}
      </div>
    </Dialog>
  );
}
