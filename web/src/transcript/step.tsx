/** A step: the reply and the calls that it asked for. The same for a live one and a settled one. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Call, StepRow } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { type Axis, axisOf } from "../timeline/axis";
import { type CallGroup, groupCalls } from "../timeline/call_grouping";
import { Ticks } from "../timeline/lane";
import { stepNumber } from "../timeline/turns";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { Markdown } from "../ui/markdown/markdown";
import { CallView } from "./call_row";

export function StepView({ session, row }: { session: SessionStore; row: StepRow }) {
  const { calls: ids, repliedAt } = row;
  // The same element as before, so that a text that grows draws no call anew.
  const calls = useMemo(
    () => (ids.length > 0 ? <Calls session={session} step={row.key} ids={ids} repliedAt={repliedAt} /> : null),
    [session, row.key, ids, repliedAt],
  );
  const silent = row.text === "" && row.calls.length === 0;
  return (
    <article class="step" aria-label={texts.transcript.reply} aria-busy={row.live}>
      {row.reasoning ? <Reasoning row={row} /> : null}
      {row.live && silent && !row.reasoning ? <p class="transcript-thinking">{texts.transcript.thinking}</p> : null}
      {row.text ? <Markdown text={row.text} whole={!row.live} owner={row} /> : null}
      {row.cut ? <p class="step-cut">{texts.transcript.replyCut}</p> : null}
      {calls}
    </article>
  );
}

function Reasoning({ row }: { row: StepRow }) {
  const open = disclosureOf(`reasoning ${row.key}`);
  const thinking = row.live && row.text === "" && row.calls.length === 0;
  return (
    <div class="step-reasoning">
      <Disclosure open={open}>
        {thinking ? <span class="transcript-thinking">{texts.transcript.thinking}</span> : texts.transcript.reasoning}
      </Disclosure>
      {open.value ? (
        <div class="step-thought" dir="auto">
          {row.reasoning}
        </div>
      ) : null}
    </div>
  );
}

interface CallsProps {
  session: SessionStore;
  step: string;
  ids: readonly string[];
  repliedAt: number | null;
}

/** The calls are the timeline: rows with bars on one time axis. */
function Calls({ session, step, ids, repliedAt }: CallsProps) {
  const axis = useMemo(() => axisOf(session, ids, repliedAt), [session, ids, repliedAt]);
  return (
    <div class="step-calls" role="group" aria-label={texts.transcript.calls(ids.length, 0)}>
      {ids.length > 1 ? <Top session={session} step={step} ids={ids} /> : null}
      <CallRows session={session} step={step} ids={ids} axis={axis} />
      <Foot session={session} ids={ids} axis={axis} />
    </div>
  );
}

function CallRows({ session, step, ids, axis }: Omit<CallsProps, "repliedAt"> & { axis: Axis }) {
  // A text, so that the rows are drawn anew only if they are folded another way.
  const folded = useMemo(
    () => computed(() => JSON.stringify(groupCalls(ids.flatMap((id) => session.call(id).value ?? [])))),
    [session, ids],
  ).value;
  const entries = JSON.parse(folded) as readonly (string | CallGroup)[];
  // Calls that are not known yet have no row of their own to fold.
  const rows = entries.every((entry) => typeof entry === "string") ? ids : entries;
  return (
    <>
      {rows.map((entry) =>
        typeof entry === "string" ? (
          <CallView key={entry} session={session} id={entry} axis={axis} />
        ) : (
          <CallGroupView key={entry.ids[0]} session={session} step={step} group={entry} axis={axis} />
        ),
      )}
    </>
  );
}

interface CallGroupProps {
  session: SessionStore;
  step: string;
  group: CallGroup;
  axis: Axis;
}

/** One line for many calls that went well; unfolded, each of them. */
function CallGroupView({ session, step, group: { tool, ids }, axis }: CallGroupProps) {
  const open = disclosureOf(`group ${session.id} ${step} ${tool}`);
  return (
    <>
      <div class="call-line step-group">
        <Disclosure open={open}>
          <b>{tool}</b> <span class="call-line-argument">{texts.transcript.alike(ids.length)}</span>
        </Disclosure>
      </div>
      {open.value ? ids.map((id) => <CallView key={id} session={session} id={id} axis={axis} />) : null}
    </>
  );
}

/** Apart from the rows, which must not be drawn anew because a number changes. */
function Top({ session, step, ids }: { session: SessionStore; step: string; ids: readonly string[] }) {
  const number = useMemo(() => computed(() => stepNumber(session, step)), [session, step]);
  const running = useMemo(
    () => computed(() => ids.filter((id) => session.call(id).value?.phase === "started").length),
    [session, ids],
  );
  return (
    <div class="step-calls-top">
      {number.value === null ? null : <b>{texts.timeline.step(number.value)}</b>}{" "}
      <span>{texts.transcript.calls(ids.length, running.value)}</span>
      <span class="layout-grow" />
      <NestedCount session={session} ids={ids} />
    </div>
  );
}

function NestedCount({ session, ids }: { session: SessionStore; ids: readonly string[] }) {
  const text = useMemo(
    () =>
      computed(() => {
        const nested = ids.flatMap((id) => session.call(id).value?.nested ?? []);
        const began = nested.reduce((sum, part) => sum + part.began, 0);
        return began === 0
          ? ""
          : texts.call.nested(
              began,
              nested.reduce((sum, part) => sum + part.completed, 0),
            );
      }),
    [session, ids],
  );
  return text.value ? <span>{text}</span> : null;
}

/** A call that is alone and quick needs no axis to be read. */
function Foot({ session, ids, axis }: { session: SessionStore; ids: readonly string[]; axis: Axis }) {
  const isShown = useMemo(
    () =>
      computed(() => {
        const calls = ids.flatMap((id) => session.call(id).value ?? []);
        return calls.some((call) => call.startedAt !== null) && (calls.length > 1 || calls.some(isLong));
      }),
    [session, ids],
  );
  return isShown.value ? <Ticks axis={axis} /> : null;
}

function isLong(call: Call): boolean {
  return call.nested !== null || (call.duration ?? 0) >= 1;
}
