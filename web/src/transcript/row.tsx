/** One row of the transcript, whatever it is. */

import { computed } from "@preact/signals";
import { useMemo, useRef } from "preact/hooks";
import { serverTime } from "../api/server_clock";
import { AttachmentView } from "../calls/attachment";
import type { Compacted, EndRow, MessageRow, Note, NoteRow, Row } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { texts } from "../texts";
import { fullTime } from "../texts/amounts";
import { axisOf } from "../timeline/axis";
import { TurnLine } from "../timeline/turn_line";
import { second } from "../ui/clock";
import { Copy } from "../ui/code";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { canShowTimes } from "../ui/first_times";
import { SummaryText } from "../ui/summary_text";
import { CallView } from "./call_row";
import { MessageEditor } from "./message_editor";
import { ReplyActions } from "./reply_actions";
import { StepView } from "./step";
import { TurnMenu } from "./turn_menu";

type RetriedNote = Note & { what: "retried" };

export function RowContent({ session, row }: { session: SessionStore; row: Row }) {
  return (
    <>
      <Content session={session} row={row} />
      <TurnLine session={session} row={row} />
      {row.kind === "message" ? null : <ReplyActions session={session} row={row} />}
    </>
  );
}

function Content({ session, row }: { session: SessionStore; row: Row }) {
  switch (row.kind) {
    case "message":
      return <MessageView session={session} row={row} />;
    case "step":
      return <StepView session={session} row={row} />;
    case "call":
      return (
        <div class="step-calls is-own" role="group" aria-label={texts.call.byYou}>
          <OwnCall session={session} id={row.key} />
        </div>
      );
    case "note":
      return <NoteView session={session} row={row} />;
    case "end":
      return <EndView row={row} />;
  }
}

function OwnCall({ session, id }: { session: SessionStore; id: string }) {
  const axis = useMemo(() => axisOf(session, [id], null), [session, id]);
  return <CallView session={session} id={id} axis={axis} isOwn />;
}

function MessageView({ session, row }: { session: SessionStore; row: MessageRow }) {
  const steered = row.mode === "steer";
  const { turnId } = row;
  const place = useRef<HTMLDivElement>(null);
  const edited = useMemo(
    () => computed(() => turnId !== null && unsavedTexts(session.id).get(textName.edited(turnId)) !== undefined),
    [session, turnId],
  );
  if (edited.value && !steered) {
    const back = (): void => void requestAnimationFrame(() => place.current?.querySelector("button")?.focus());
    return <MessageEditor session={session} row={row} onCancel={back} />;
  }
  const said = (
    <article
      class={steered ? "row-message is-steered" : "row-message"}
      aria-label={texts.transcript.you}
      title={canShowTimes.value ? fullTime(row.at) : undefined}
    >
      {steered ? <em>{texts.transcript.steered}</em> : null}
      {row.text ? (
        <div class="row-text" dir="auto">
          {row.text}
        </div>
      ) : null}
      {row.attachments.length > 0 ? (
        <div class="row-files">
          {row.attachments.map((file, index) => (
            <AttachmentView key={index} sessionId={session.id} file={file} />
          ))}
        </div>
      ) : null}
    </article>
  );
  if (steered || turnId === null) return said;
  return (
    <div class="row-turn" ref={place}>
      {said}
      <TurnMenu session={session} row={row} />
    </div>
  );
}

function NoteView({ session, row: { note, key, at } }: { session: SessionStore; row: NoteRow }) {
  switch (note.what) {
    case "retried":
      return <RetriedView note={note} at={at} />;
    case "switched":
      return <p class="row-note">{texts.notes.switched(note.from, note.to, note.cause)}</p>;
    case "resumed":
      return <p class="row-note">{texts.notes.resumed(note.attempt)}</p>;
    case "warning":
      return (
        <p class="row-note is-warning" dir="auto">
          {note.text}
        </p>
      );
    case "changed":
      return <p class="row-note">{texts.notes.changed({ ...note.changes })}</p>;
    case "compacted":
      return <CompactedView note={note} name={`${session.id} ${key}`} />;
  }
}

/** How long is still to wait, as it passes. */
function RetriedView({ note, at }: { note: RetriedNote; at: number }) {
  const isPast = useRef(serverTime() >= at + note.delay);
  const text = isPast.current ? texts.notes.retried(note.cause, note.delay) : <Waiting note={note} at={at} />;
  return <p class="row-note">{text}</p>;
}

function Waiting({ note, at }: { note: RetriedNote; at: number }) {
  const left = at + note.delay - serverTime(second.value);
  return <>{left > 0 ? texts.notes.retrying(note.cause, left) : texts.notes.retried(note.cause, note.delay)}</>;
}

/** The name tells it from the lines of other sessions, which are numbered alike. */
function CompactedView({ note, name }: { note: Compacted; name: string }) {
  const open = disclosureOf(name);
  return (
    <div class="row-note is-compacted">
      <div class="row-summary">
        <Disclosure open={open}>{texts.compaction.done(note.before, note.after)}</Disclosure>
        {open.value ? <Copy text={note.summary} /> : null}
      </div>
      {open.value ? <SummaryText text={note.summary} owner={note} /> : null}
    </div>
  );
}

function EndView({ row }: { row: EndRow }) {
  const { ended } = texts.transcript;
  if (row.error !== null) {
    return (
      <div class="row-end is-failed" role="group" aria-label={ended.failed()}>
        <b>{texts.error(row.error.kind)}</b>
        <p dir="auto">{row.error.message}</p>
        {row.error.hint ? <p class="text-dim">{row.error.hint}</p> : null}
      </div>
    );
  }
  const said = !row.started
    ? ended.notStarted
    : row.outcome === "cancelled"
      ? ended.cancelled(row.reason)
      : row.outcome === "parked"
        ? ended.parked(row.reason)
        : ended.failed();
  return (
    <p class={row.outcome === "cancelled" ? "row-note" : "row-note is-warning"}>
      {said}
      {row.leftOver > 0 ? ` ${ended.leftOver(row.leftOver)}` : ""}
    </p>
  );
}
