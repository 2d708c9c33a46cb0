/** Where the time of a turn went, on one axis: that of the chosen call, or the last one. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Labelled } from "../calls/call_body";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { PARTS, placeOf, tickFor, tickTexts } from "../timeline/scale";
import { joinSpans, type Span } from "../timeline/spans";
import { turnTimes } from "../timeline/turns";
import { ShareBar } from "./share_bar";

/** Less than this is not worth a line. */
const WORTH_SAYING = 0.1;

export function TurnSection({ session, callId = null }: { session: SessionStore; callId?: string | null }) {
  const turn = useMemo(
    () =>
      computed(() => {
        const turnId = turnOf(session, callId);
        return turnId === null ? null : turnTimes(session, turnId);
      }),
    [session, callId],
  );
  const times = turn.value;
  if (times === null) return null;
  const { label, model, tools, saved, serial } = texts.inspector.thisTurn;
  const { course } = times;
  const all = [...course.model, ...course.tools];
  const start = Math.min(...all.map((span) => span.start));
  const tick = tickFor(Math.max(...all.map((span) => span.end)) - start);
  const part = (spans: readonly Span[]): Span[] =>
    joinSpans(spans, (tick * PARTS) / 150).map((span) => ({ start: span.start - start, end: span.end - start }));
  return (
    <Labelled label={label}>
      <div class="share-bar-list turn-section">
        <Course name={model} kind="" spans={part(course.model)} tick={tick} number={seconds(times.model)} />
        <Course name={tools} kind="completed" spans={part(course.tools)} tick={tick} number={seconds(times.tools)} />
        <div class="share-bar" aria-hidden="true">
          <span />
          <span class="lane-ticks">
            {tickTexts(tick).map((text, index) => (
              <span key={index}>{text}</span>
            ))}
          </span>
          <span class="share-bar-amount" />
        </div>
        {times.saved >= WORTH_SAYING ? (
          <ShareBar name={saved} part={times.saved / times.serial} number={seconds(times.saved)} kind="saved" />
        ) : null}
      </div>
      {times.saved >= WORTH_SAYING ? <p class="text-dim">{serial(seconds(times.serial))}</p> : null}
    </Labelled>
  );
}

interface CourseProps {
  name: string;
  kind: string;
  spans: readonly Span[];
  tick: number;
  number: string;
}

function Course({ name, kind, spans, tick, number }: CourseProps) {
  return (
    <div class="share-bar">
      <span>{name}</span>
      <span class="lane" aria-hidden="true">
        {spans.map(({ start, end }, index) => {
          const left = placeOf(start, tick);
          const style = { left: `min(${left}%, 100% - 3px)`, width: `${placeOf(end, tick) - left}%` };
          return <i key={index} class={kind ? `lane-bar is-${kind}` : "lane-bar"} style={style} />;
        })}
      </span>
      <span class="share-bar-amount">{number}</span>
    </div>
  );
}

function turnOf(session: SessionStore, callId: string | null): string | null {
  const order = (callId === null ? session.order : session.shown).value;
  for (let at = order.length - 1; at >= 0; at--) {
    const row = session.peek(order[at]!);
    if (row === undefined || row.turnId === null || row.kind === "call") continue;
    if (callId === null || (row.kind === "step" && row.calls.includes(callId))) return row.turnId;
  }
  return null;
}
