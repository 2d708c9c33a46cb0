/** The calls of a container, under it: alike ones in one line that unfolds. */

import { useMemo, useState } from "preact/hooks";
import { cancelCall } from "../api/client";
import type { Call } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { Elapsed } from "../ui/elapsed";
import { attempt } from "../ui/notice";
import type { Axis } from "./axis";
import { type GroupedCall, type NestedLine, runningLines, storedLines, unknownLine } from "./grouping";
import { Bars } from "./lane";
import { storedNested } from "./stored_calls";

const MOST_LINES = 14;
/** Rows of an unfolded line have one height, so that only those in view need to be there. */
const ROW_PX = 26;
const ROWS_SHOWN = 8;
const ROWS_BEYOND = 4;

export function NestedRows({ session, call, axis }: { session: SessionStore; call: Call; axis: Axis }) {
  const lines = useLines(session, call);
  const shown = lines.slice(0, MOST_LINES);
  return (
    <ul class="nested-calls" aria-label={texts.timeline.nested}>
      {shown.map((line) => (
        <Line key={line.key} line={line} axis={axis} session={session.id} name={`nested ${call.callId} ${line.key}`} />
      ))}
      {lines.length > shown.length ? (
        <li class="text-dim nested-calls-more">{texts.call.moreNested(lines.length - shown.length)}</li>
      ) : null}
    </ul>
  );
}

function useLines(session: SessionStore, call: Call): readonly NestedLine[] {
  const nested = call.nested!;
  const all = nested.blob === null ? null : storedNested(session.id, nested.blob).value;
  return useMemo(() => {
    const began = call.startedAt ?? 0;
    const lines = all === null ? runningLines(nested) : storedLines(all, began, nested.listed);
    return lines.length > 0 ? lines : [unknownLine(nested, began)];
  }, [nested, all, call.startedAt]);
}

interface LineProps {
  line: NestedLine;
  axis: Axis;
  session: string;
  name: string;
}

function Line({ line, axis, session, name }: LineProps) {
  const open = disclosureOf(name);
  const tool = line.tool || texts.timeline.nestedTool;
  const form = line.form === "running" ? texts.call.running : texts.call.outcome(line.form);
  const count = line.count > 1 ? texts.timeline.count(line.count, line.ended) : "";
  // What each worked on is known only to those who saw it begin, so it is told only while it runs.
  const label = texts.timeline.nestedLine(
    tool,
    line.count,
    form,
    line.form === "running" ? line.preview : "",
    line.ended,
  );
  const words = (
    <>
      <b>{tool}</b>
      <span class="call-line-argument">{line.preview}</span>
      {count ? <span class="nested-calls-count">{count}</span> : null}
    </>
  );
  return (
    <li class={`nested-calls-item is-${line.form}`}>
      <div class="call-line">
        {line.ones.length > 1 ? (
          <Disclosure open={open}>
            <span class="text-hidden">{label}</span>
            <span class="nested-calls-about" aria-hidden="true">
              {words}
            </span>
          </Disclosure>
        ) : (
          <span class="disclosure">
            <span class="text-hidden">{label}</span>
            <span class="nested-calls-about" aria-hidden="true">
              {words}
            </span>
          </span>
        )}
        <span class="call-line-state" aria-hidden="true">
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
  if (end === null) return <Elapsed at={start} silent />;
  return (
    <span class="elapsed" aria-hidden="true">
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
      class="nested-calls-ones"
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
  one: GroupedCall;
  number: number;
  line: NestedLine;
  axis: Axis;
  session: string;
}

function One({ one, number, line, axis, session }: OneProps) {
  return (
    <div class="call-line">
      <span class="disclosure">
        <span class="nested-calls-at">{number}</span>
        <span class="call-line-argument">{one.preview}</span>
      </span>
      <span class="call-line-state" />
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
      class="button-x"
      aria-label={name}
      title={name}
      onClick={() => void attempt(() => cancelCall(session, callId))}
    >
      <span aria-hidden="true">✕</span>
    </button>
  );
}
