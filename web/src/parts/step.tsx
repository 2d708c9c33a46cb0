/** A step: the reply and the calls that it asked for. The same for a live one and a settled one. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Opened } from "../state/opened";
import type { Call, StepRow } from "../state/rows";
import { texts } from "../texts";
import { axisOf, type Axis } from "../timeline/axis";
import { Ticks } from "../timeline/lane";
import { stepNumber } from "../timeline/turns";
import { CallView } from "./call";
import { Fold } from "./fold";
import { Markdown } from "./markdown/markdown";
import { unfoldedOf } from "./unfolded";

export function StepView({ opened, row }: { opened: Opened; row: StepRow }) {
  const { calls: ids, repliedAt } = row;
  // The same element as before, so that a text that grows draws no call anew.
  const calls = useMemo(
    () => (ids.length > 0 ? <Calls opened={opened} step={row.key} ids={ids} repliedAt={repliedAt} /> : null),
    [opened, row.key, ids, repliedAt],
  );
  const silent = row.text === "" && row.calls.length === 0;
  return (
    <article class="step" aria-label={texts.transcript.reply} aria-busy={row.live}>
      {row.reasoning ? <Reasoning row={row} /> : null}
      {row.live && silent && !row.reasoning ? <p class="thinking">{texts.transcript.thinking}</p> : null}
      {row.text ? <Markdown text={row.text} whole={!row.live} owner={row} /> : null}
      {row.cut ? <p class="cut">{texts.transcript.replyCut}</p> : null}
      {calls}
    </article>
  );
}

function Reasoning({ row }: { row: StepRow }) {
  const open = unfoldedOf(`reasoning ${row.key}`);
  const thinking = row.live && row.text === "" && row.calls.length === 0;
  return (
    <div class="reasoning">
      <Fold open={open}>
        {thinking ? <span class="thinking">{texts.transcript.thinking}</span> : texts.transcript.reasoning}
      </Fold>
      {open.value ? <div class="thought">{row.reasoning}</div> : null}
    </div>
  );
}

interface CallsProps {
  opened: Opened;
  step: string;
  ids: readonly string[];
  repliedAt: number | null;
}

/** The calls are the timeline: rows with bars on one time axis. */
function Calls({ opened, step, ids, repliedAt }: CallsProps) {
  const axis = useMemo(() => axisOf(opened, ids, repliedAt), [opened, ids, repliedAt]);
  return (
    <div class="calls" role="group" aria-label={texts.transcript.calls(ids.length, 0)}>
      {ids.length > 1 ? <Top opened={opened} step={step} ids={ids} /> : null}
      {ids.map((id) => (
        <CallView key={id} opened={opened} id={id} axis={axis} />
      ))}
      <Foot opened={opened} ids={ids} axis={axis} />
    </div>
  );
}

/** Apart from the rows, which must not be drawn anew because a number changes. */
function Top({ opened, step, ids }: { opened: Opened; step: string; ids: readonly string[] }) {
  const number = useMemo(() => computed(() => stepNumber(opened, step)), [opened, step]);
  const running = useMemo(
    () => computed(() => ids.filter((id) => opened.call(id).value?.phase === "started").length),
    [opened, ids],
  );
  return (
    <div class="top">
      {number.value === null ? null : <b>{texts.timeline.step(number.value)}</b>}{" "}
      <span>{texts.transcript.calls(ids.length, running.value)}</span>
      <span class="grow" />
      <NestedCount opened={opened} ids={ids} />
    </div>
  );
}

function NestedCount({ opened, ids }: { opened: Opened; ids: readonly string[] }) {
  const text = useMemo(
    () =>
      computed(() => {
        const nested = ids.flatMap((id) => opened.call(id).value?.nested ?? []);
        const began = nested.reduce((sum, each) => sum + each.began, 0);
        return began === 0 ? "" : texts.call.nested(began, nested.reduce((sum, each) => sum + each.completed, 0));
      }),
    [opened, ids],
  );
  return text.value ? <span>{text}</span> : null;
}

/** A call that is alone and quick needs no axis to be read. */
function Foot({ opened, ids, axis }: { opened: Opened; ids: readonly string[]; axis: Axis }) {
  const wanted = useMemo(
    () =>
      computed(() => {
        const calls = ids.flatMap((id) => opened.call(id).value ?? []);
        return calls.some((call) => call.startedAt !== null) && (calls.length > 1 || calls.some(isLong));
      }),
    [opened, ids],
  );
  return wanted.value ? <Ticks axis={axis} /> : null;
}

function isLong(call: Call): boolean {
  return call.nested !== null || (call.duration ?? 0) >= 1;
}
