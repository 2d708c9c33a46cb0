/** A sent message as it is edited: sent again, it takes the place of what it said before. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { newKey } from "../api/ids";
import { asProblem, type Problem } from "../api/problem";
import { saidIn } from "../composer/said_before";
import type { DraftContent } from "../composer/unsaved_draft";
import { tooLongProblem } from "../session/message_length";
import type { MessageRow } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { focusMessageBox } from "../ui/focus";
import { isSubmitKey } from "../ui/keyboard";
import { Refusal } from "../ui/refusal";
import { replaceTurn } from "./replacing";

/** The edit that was opened just now: only this one takes the focus when it is drawn. */
let justOpened = "";

export function startEditing(session: SessionStore, row: MessageRow): void {
  justOpened = textName.edited(row.turnId!);
  unsavedTexts(session.id).put(justOpened, row.text);
}

/** What was edited is sent; the text stays until that is done, and the same again has the same key. */
function useReplacing(session: SessionStore, turnId: string) {
  const unsaved = unsavedTexts(session.id);
  const name = textName.edited(turnId);
  const [problem, setProblem] = useState<Problem | null>(null);
  const attempt = useRef({ body: "", key: "" });
  const busy = unsaved.isSending(name);
  const send = async (content: DraftContent): Promise<void> => {
    const refused = tooLongProblem(content.text, texts.composer.tooLongHere);
    setProblem(refused);
    if (refused !== null) return;
    const body = JSON.stringify(content);
    if (attempt.current.body !== body) attempt.current = { body, key: newKey() };
    try {
      const isSent = await unsaved.send(name, () => replaceTurn(session, turnId, content, attempt.current.key));
      if (isSent) focusMessageBox();
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  return { problem, busy, send };
}

/** As high as its text, and the focus in it if the person opened it just now. */
function useField(text: string, name: string) {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => {
    const area = field.current!;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight + 2}px`;
  }, [text]);
  useLayoutEffect(() => {
    if (justOpened !== name) return;
    justOpened = "";
    field.current!.focus();
    field.current!.setSelectionRange(text.length, text.length);
  }, []);
  return field;
}

interface Props {
  session: SessionStore;
  row: MessageRow;
  onCancel: () => void;
}

export function MessageEditor({ session, row, onCancel }: Props) {
  const turnId = row.turnId!;
  const name = textName.edited(turnId);
  const unsaved = unsavedTexts(session.id);
  const text = unsaved.get(name) ?? row.text;
  const field = useField(text, name);
  const { problem, busy, send } = useReplacing(session, turnId);
  const attachments = saidIn(session, turnId)?.attachments ?? [];
  const isReady = (text.trim() !== "" || attachments.length > 0) && session.head.turn.value === null;
  const submit = (): void => {
    if (isReady && !busy) void send({ text, attachments });
  };
  const cancel = (): void => {
    if (busy) return;
    unsaved.drop(name);
    onCancel();
  };
  return (
    <form
      class="message-editor"
      aria-label={texts.turn.edit}
      onSubmit={(event) => {
        event.preventDefault();
        submit();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") {
          event.preventDefault();
          event.stopPropagation();
          cancel();
        } else if (isSubmitKey(event) && event.target === field.current) {
          event.preventDefault();
          submit();
        }
      }}
    >
      <textarea
        ref={field}
        dir="auto"
        aria-label={texts.turn.editText}
        readOnly={busy}
        value={text}
        onInput={(event) => unsaved.put(name, event.currentTarget.value)}
      />
      <p class="text-dim">{texts.turn.editNote}</p>
      {problem === null ? null : <Refusal problem={problem} lead={texts.composer.failed} />}
      <div class="layout-buttons">
        <Button keys="Esc" busy={busy} onClick={cancel}>
          {texts.cancel}
        </Button>
        <Button kind="main" keys="↵" type="submit" busy={busy} disabled={!isReady}>
          {texts.composer.send}
        </Button>
      </div>
    </form>
  );
}
