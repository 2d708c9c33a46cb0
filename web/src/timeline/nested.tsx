/** The calls of a container, under it: alike ones in one line that unfolds. */

import { useMemo, useState } from "preact/hooks";
import { cancelCall } from "../api/keryx";
import { attempt } from "../state/app";
import type { Opened } from "../state/opened";
import type { Call } from "../state/rows";
import { Fold } from "../parts/fold";
import { Since } from "../parts/since";
import { unfoldedOf } from "../parts/unfolded";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { crowd, linesOf, linesOfAll, type NestedLine, type NestedOne } from "./alike";
import type { Axis } from "./axis";
import { Bars } from "./lane";
import { storedNested } from "./stored";

const MOST_LINES = 14;
/** Rows of an unfolded line have one height, so that only those in view need to be there. */
const ROW_PX = 26;
const ROWS_SHOWN = 8;
const ROWS_BEYOND = 4;

export function NestedRows({ opened, call, axis }: { opened: Opened; call: Call; axis: Axis }) {
  const lines = useLines(opened, call);
  const shown = lines.slice(0, MOST_LINES);
  return (
    <ul class="nested" aria-label={texts.timeline.nested}>
      {shown.map((line) => (
        <Line key={line.key} line={line} axis={axis} session={opened.id} name={`nested ${call.callId} ${line.key}`} />
      ))}
      {lines.length > shown.length ? (
        <li class="dim more">{texts.call.moreNested(lines.length - shown.length)}</li>
      ) : null}
    </ul>
  );
}

function useLines(opened: Opened, call: Call): readonly NestedLine[] {
  const nested = call.nested!;
  const all = nested.blob === null ? null : storedNested(opened.id, nested.blob).value;
  return useMemo(() => {
    const began = call.startedAt ?? 0;
    const lines = all === null ? linesOf(nested) : linesOfAll(all, began, nested.listed);
    return lines.length > 0 ? lines : [crowd(nested, began)];
  }, [nested, all, call.startedAt]);
}

interface LineProps {
  line: NestedLine;
  axis: Axis;
  session: string;
  name: string;
}

function Line({ line, axis, session, name }: LineProps) {
  const open = unfoldedOf(name);
  const tool = line.tool || texts.timeline.nestedTool;
  const form = line.form === "running" ? texts.call.running : texts.call.outcome(line.form);
  const count = line.count > 1 ? texts.timeline.count(line.count, line.ended) : "";
  // What each worked on is known only to those who saw it begin, so it is told only while it runs.
  const told = texts.timeline.nestedLine(tool, line.count, form, line.form === "running" ? line.preview : "", line.ended);
  const words = (
    <>
      <b>{tool}</b>
      <span class="arg">{line.preview}</span>
      {count ? <span class="count">{count}</span> : null}
    </>
  );
  return (
    <li class={`kid ${line.form}`}>
      <div class="line">
        {line.ones.length > 1 ? (
          <Fold open={open}>
            <span class="unseen">{told}</span>
            <span class="about" aria-hidden="true">
              {words}
            </span>
          </Fold>
        ) : (
          <span class="fold">
            <span class="unseen">{told}</span>
            <span class="about" aria-hidden="true">
              {words}
            </span>
          </span>
        )}
        <span class="state" aria-hidden="true">
          {line.form === "completed" || line.form === "running" ? "" : form}
        </span>
        <span class="lane" aria-hidden="true">
          <Bars axis={axis} form={line.form} start={line.start} end={line.end} spans={spansOf(line)} />
        </span>
        <Took line={line} />
        {line.form === "running" && line.single !== null ? (
          <CancelOne session={session} callId={line.single} tool={tool} preview={line.preview} />
        ) : null}
      </div>
      {open.value && line.ones.length > 1 ? <Ones line={line} axis={axis} tool={tool} session={session} /> : null}
    </li>
  );
}

function spansOf(line: NestedLine): { start: number; end: number }[] | undefined {
  if (line.ones.length === 0 || line.end === null) return undefined;
  return line.ones.map(({ start, end }) => ({ start, end: end ?? start }));
}

function Took({ line: { start, end } }: { line: { start: number; end: number | null } }) {
  if (end === null) return <Since at={start} silent />;
  return (
    <span class="num" aria-hidden="true">
      {end > start ? seconds(end - start) : ""}
    </span>
  );
}

/** All of them, of which only those in view are in the document. */
function Ones({ line, axis, tool, session }: { line: NestedLine; axis: Axis; tool: string; session: string }) {
  const [top, setTop] = useState(0);
  const { ones } = line;
  const from = Math.max(0, Math.floor(top / ROW_PX) - ROWS_BEYOND);
  const to = Math.min(ones.length, from + ROWS_SHOWN + 2 * ROWS_BEYOND);
  const height = Math.min(ones.length, ROWS_SHOWN) * ROW_PX;
  return (
    <div
      class="ones"
      role="region"
      aria-label={texts.timeline.callsOf(tool, ones.length)}
      tabIndex={0}
      style={{ height: `${height}px` }}
      onScroll={(event) => setTop(event.currentTarget.scrollTop)}
    >
      <div style={{ height: `${ones.length * ROW_PX}px`, paddingTop: `${from * ROW_PX}px` }}>
        {ones.slice(from, to).map((one, index) => (
          <One key={one.callId} one={one} number={from + index + 1} line={line} axis={axis} session={session} />
        ))}
      </div>
    </div>
  );
}

interface OneProps {
  one: NestedOne;
  number: number;
  line: NestedLine;
  axis: Axis;
  session: string;
}

function One({ one, number, line, axis, session }: OneProps) {
  return (
    <div class="line">
      <span class="fold">
        <span class="at">{number}</span>
        <span class="arg">{one.preview}</span>
      </span>
      <span class="state" />
      <span class="lane" aria-hidden="true">
        <Bars axis={axis} form={line.form} start={one.start} end={one.end} />
      </span>
      <Took line={one} />
      {one.end === null ? (
        <CancelOne session={session} callId={one.callId} tool={line.tool} preview={one.preview} />
      ) : null}
    </div>
  );
}

interface CancelProps {
  session: string;
  callId: string;
  tool: string;
  preview: string;
}

function CancelOne({ session, callId, tool, preview }: CancelProps) {
  const name = texts.timeline.cancel(tool, preview);
  return (
    <button
      type="button"
      class="x"
      aria-label={name}
      title={name}
      onClick={() => void attempt(() => cancelCall(session, callId))}
    >
      <span aria-hidden="true">✕</span>
    </button>
  );
}
