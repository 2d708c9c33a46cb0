/** One row of the transcript, whatever it is. */

import { useMemo } from "preact/hooks";
import type { Opened } from "../state/opened";
import type { Compacted, EndRow, MessageRow, NoteRow, Row } from "../state/rows";
import { texts } from "../texts";
import { fullTime } from "../texts/amounts";
import { axisOf } from "../timeline/axis";
import { TurnLine } from "../timeline/turnline";
import { AttachmentView } from "./attachment";
import { CallView } from "./call";
import { Copy } from "./code";
import { Fold } from "./fold";
import { StepView } from "./step";
import { SummaryText } from "./summary";
import { TurnMenu } from "./turnmenu";
import { unfoldedOf } from "./unfolded";

export function RowContent({ opened, row }: { opened: Opened; row: Row }) {
  return (
    <>
      <Content opened={opened} row={row} />
      <TurnLine opened={opened} row={row} />
    </>
  );
}

function Content({ opened, row }: { opened: Opened; row: Row }) {
  switch (row.kind) {
    case "message":
      return <MessageView opened={opened} row={row} />;
    case "step":
      return <StepView opened={opened} row={row} />;
    case "call":
      return (
        <div class="calls own" role="group" aria-label={texts.call.byYou}>
          <OwnCall opened={opened} id={row.key} />
        </div>
      );
    case "note":
      return <NoteView opened={opened} row={row} />;
    case "end":
      return <EndView row={row} />;
  }
}

function OwnCall({ opened, id }: { opened: Opened; id: string }) {
  const axis = useMemo(() => axisOf(opened, [id], null), [opened, id]);
  return <CallView opened={opened} id={id} axis={axis} />;
}

function MessageView({ opened, row }: { opened: Opened; row: MessageRow }) {
  const steered = row.mode === "steer";
  const said = (
    <article class={steered ? "said steered" : "said"} aria-label={texts.transcript.you} title={fullTime(row.at)}>
      {steered ? <em>{texts.transcript.steered}</em> : null}
      {row.text ? <div class="words">{row.text}</div> : null}
      {row.attachments.length > 0 ? (
        <div class="files">
          {row.attachments.map((file, index) => (
            <AttachmentView key={index} sessionId={opened.id} file={file} />
          ))}
        </div>
      ) : null}
    </article>
  );
  if (steered || row.turnId === null) return said;
  return (
    <div class="turnhead">
      {said}
      <TurnMenu opened={opened} row={row} />
    </div>
  );
}

function NoteView({ opened, row: { note, key } }: { opened: Opened; row: NoteRow }) {
  switch (note.what) {
    case "retried":
      return <p class="note">{texts.notes.retried(note.cause, note.delay)}</p>;
    case "switched":
      return <p class="note">{texts.notes.switched(note.from, note.to, note.cause)}</p>;
    case "resumed":
      return <p class="note">{texts.notes.resumed(note.attempt)}</p>;
    case "warning":
      return <p class="note warn">{note.text}</p>;
    case "changed":
      return <p class="note">{texts.notes.changed({ ...note.changes })}</p>;
    case "compacted":
      return <CompactedView note={note} name={`${opened.id} ${key}`} />;
  }
}

/** The name tells it from the lines of other sessions, which are numbered alike. */
function CompactedView({ note, name }: { note: Compacted; name: string }) {
  const open = unfoldedOf(name);
  return (
    <div class="note compacted">
      <div class="summed">
        <Fold open={open}>{texts.compaction.done(note.before, note.after)}</Fold>
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
      <div class="end failed" role="group" aria-label={ended.failed()}>
        <b>{texts.error(row.error.kind)}</b>
        <p>{row.error.message}</p>
        {row.error.hint ? <p class="dim">{row.error.hint}</p> : null}
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
    <p class={row.outcome === "cancelled" ? "note" : "note warn"}>
      {said}
      {row.leftOver > 0 ? ` ${ended.leftOver(row.leftOver)}` : ""}
    </p>
  );
}
