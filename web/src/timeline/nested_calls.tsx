/** The calls of a container, under it: alike ones in one line that unfolds. */

import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { cancelCall } from "../api/client";
import { AGENT_TOOL, DELEGATE_TOOL } from "../session/child_agents";
import type { Call } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { Elapsed } from "../ui/elapsed";
import { attempt } from "../ui/notice";
import { AgentLink, openAgent } from "./agent_link";
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
        <Line
          key={line.key}
          line={line}
          axis={axis}
          session={session.id}
          name={`nested ${call.callId} ${line.key}`}
          isAgent={call.tool === DELEGATE_TOOL && line.tool === AGENT_TOOL}
        />
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
  /** Whether each of these calls is a child agent, which has a session of its own. */
  isAgent: boolean;
}

type HeadingProps = Omit<LineProps, "axis"> & { children: ComponentChildren };

function Line({ line, axis, session, name, isAgent }: LineProps) {
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
      <span class="call-line-argument" dir="auto">
        {line.preview}
      </span>
      {count ? <span class="nested-calls-count">{count}</span> : null}
    </>
  );
  return (
    <li class={`nested-calls-item is-${line.form}`}>
      <div class="call-line">
        <Heading line={line} session={session} name={name} isAgent={isAgent}>
          <span class="text-hidden">{isAgent && line.single !== null ? texts.agents.link(label) : label}</span>
          <span class="nested-calls-about" aria-hidden="true">
            {words}
          </span>
        </Heading>
        <span class="call-line-state" aria-hidden="true">
          {line.form === "completed" || line.form === "running" ? "" : form}
        </span>
        <BarLane parent={session} callId={isAgent ? line.single : null}>
          <Bars axis={axis} form={line.form} start={line.start} end={line.end} spans={spansOf(line)} />
        </BarLane>
        <Took line={line} />
        {line.form === "running" && line.single !== null ? (
          <CancelOne session={session} callId={line.single} tool={tool} preview={line.preview} />
        ) : null}
      </div>
      {open.value && line.ones.length > 1 ? (
        <Ones line={line} axis={axis} tool={tool} session={session} isAgent={isAgent} />
      ) : null}
    </li>
  );
}

/** What stands at the left of a line: it unfolds several calls, leads to a child agent, or just says what it is. */
function Heading({ line, session, name, isAgent, children }: HeadingProps) {
  if (line.ones.length > 1) return <Disclosure open={disclosureOf(name)}>{children}</Disclosure>;
  if (!isAgent || line.single === null) return <span class="disclosure">{children}</span>;
  return (
    <AgentLink parent={session} callId={line.single}>
      {children}
    </AgentLink>
  );
}

/** A bar of a child agent leads where its line does; keyboards and readers have the line. */
function BarLane({ parent, callId, children }: { parent: string; callId: string | null; children: ComponentChildren }) {
  if (callId === null) {
    return (
      <span class="lane" aria-hidden="true">
        {children}
      </span>
    );
  }
  return (
    <span class="lane nested-calls-agent" aria-hidden="true" onClick={() => openAgent(parent, callId)}>
      {children}
    </span>
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
function Ones({ line, axis, tool, session, isAgent }: Omit<LineProps, "name"> & { tool: string }) {
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
          <One
            key={one.callId}
            one={one}
            number={from + index + 1}
            line={line}
            axis={axis}
            session={session}
            isAgent={isAgent}
          />
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
  isAgent: boolean;
}

function One({ one, number, line, axis, session, isAgent }: OneProps) {
  const words = (
    <>
      <span class="nested-calls-at">{number}</span>
      <span class="call-line-argument" dir="auto">
        {one.preview}
      </span>
    </>
  );
  return (
    <div class="call-line">
      {isAgent ? (
        <AgentLink parent={session} callId={one.callId}>
          {words}
        </AgentLink>
      ) : (
        <span class="disclosure">{words}</span>
      )}
      <span class="call-line-state" />
      <BarLane parent={session} callId={isAgent ? one.callId : null}>
        <Bars axis={axis} form={line.form} start={one.start} end={one.end} />
      </BarLane>
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
