/** The chosen call, all of it; until one is chosen, the newest. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { cancelCall } from "../api/client";
import { Labelled, Result, resultText } from "../calls/call_body";
import { FullArguments } from "../calls/full_text";
import { newestCall } from "../session/newest_call";
import type { Call } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { clockTime, seconds } from "../texts/amounts";
import { formOf } from "../timeline/bars";
import { type NestedLine, runningLines, storedLines } from "../timeline/grouping";
import { storedNested } from "../timeline/stored_calls";
import { Button } from "../ui/button";
import { useElapsed } from "../ui/elapsed";
import { attempt } from "../ui/notice";
import { chosen } from "./selection";
import { ShareBar } from "./share_bar";
import { TurnSection } from "./turn_section";

/** Less than this is not worth a word. */
const WORTH_SAYING = 0.1;

export function CallTab({ session }: { session: SessionStore }) {
  const newest = useMemo(() => computed(() => newestCall(session)), [session]);
  const id = chosen.value ?? newest.value;
  const call = id === null ? undefined : session.call(id).value;
  if (call === undefined) {
    return (
      <>
        <p class="text-dim">{id === null ? texts.inspector.call.none : texts.inspector.call.notLoaded}</p>
        <TurnSection session={session} />
      </>
    );
  }
  return (
    <>
      {chosen.value === null ? <p class="text-dim">{texts.inspector.call.newest}</p> : null}
      <Facts session={session} call={call} />
      {call.phase === "started" ? (
        <Button kind="stop" onClick={() => void attempt(() => cancelCall(session.id, call.callId))}>
          {texts.inspector.call.cancel}
        </Button>
      ) : null}
      <div class="call-body">
        <Labelled label={texts.call.arguments}>
          <FullArguments call={call} sessionId={session.id} />
        </Labelled>
        {call.nested !== null && call.nested.began > 0 ? <NestedSums session={session} call={call} /> : null}
        {call.phase === "finished" ? (
          <Labelled label={texts.call.result} copy={resultText(call.result)}>
            <Result parts={call.result} sessionId={session.id} />
          </Labelled>
        ) : call.output ? (
          <Labelled label={texts.call.output} copy={call.output}>
            <pre class="code-output" tabIndex={0} aria-label={texts.call.output}>
              {call.output}
            </pre>
          </Labelled>
        ) : null}
      </div>
      <TurnSection session={session} callId={call.callId} />
    </>
  );
}

function Facts({ session, call }: { session: SessionStore; call: Call }) {
  const { place, workspace } = session.head.settings.value;
  const words = texts.inspector.call;
  return (
    <dl class="call-tab-facts">
      <dt>{words.tool}</dt>
      <dd>
        <b>{call.tool}</b>
      </dd>
      <dt>{words.state}</dt>
      <dd class={`call-tab-standing is-${call.phase === "finished" ? formOf(call) : call.phase}`}>
        <State call={call} />
      </dd>
      {call.phase === "finished" ? null : (
        <>
          <dt>{words.waitingFor}</dt>
          <dd>
            {call.asking
              ? words.waitsFor.person
              : call.phase === "asked"
                ? words.waitsFor.order
                : words.waitsFor.nothing}
          </dd>
        </>
      )}
      <dt>{words.where}</dt>
      <dd>
        {place}, <code>{workspace}</code>
      </dd>
      {call.startedAt === null || !call.started ? null : (
        <>
          <dt>{words.started}</dt>
          <dd>{words.startedAt(clockTime(call.startedAt), waitedFor(session, call))}</dd>
        </>
      )}
    </dl>
  );
}

/** How long it stood in line before it began, as far as that is worth a word. */
function waitedFor(session: SessionStore, call: Call): string {
  const order = session.shown.value;
  for (let at = order.length - 1; at >= 0; at--) {
    const row = session.peek(order[at]!);
    if (row?.kind !== "step" || !row.calls.includes(call.callId)) continue;
    const waited = row.repliedAt === null || call.startedAt === null ? 0 : call.startedAt - row.repliedAt;
    return waited < WORTH_SAYING ? "" : seconds(waited);
  }
  return "";
}

function Running({ call, at }: { call: Call; at: number }) {
  const since = useElapsed(at).value;
  const far = call.done === null ? call.note : `${texts.call.progress(call.done, call.total)} ${call.note}`;
  const doing = call.asking ? texts.call.waitingForYou : texts.inspector.call.running(since);
  return <>{[doing, far.trim()].filter(Boolean).join(", ")}</>;
}

function State({ call }: { call: Call }) {
  if (call.phase === "started" && call.startedAt !== null) return <Running call={call} at={call.startedAt} />;
  if (call.asking && call.phase !== "finished") return <>{texts.call.waitingForYou}</>;
  if (call.phase !== "finished") return <>{call.phase === "writing" ? texts.call.preparing : texts.call.queued}</>;
  return <Ended call={call} />;
}

function Ended({ call }: { call: Call }) {
  const words = texts.inspector.call;
  const outcome = call.outcome ?? "unknown";
  if (call.exitCode !== null) return <>{`${texts.call.exited(call.exitCode)}, ${seconds(call.duration ?? 0)}`}</>;
  if (outcome === "completed") return <>{words.done(seconds(call.duration ?? 0))}</>;
  if (!call.started && outcome === "cancelled") return <>{texts.call.notStarted}</>;
  const took = call.started && call.duration !== null ? [seconds(call.duration)] : [];
  return (
    <>{[`${texts.call.outcome(outcome)}${texts.call.why(outcome, call.reason, call.settled)}`, ...took].join(", ")}</>
  );
}

interface Sum {
  readonly tool: string;
  readonly all: number;
  readonly done: number;
  readonly others: readonly (readonly [string, number])[];
}

function NestedSums({ session, call }: { session: SessionStore; call: Call }) {
  const nested = call.nested!;
  const all = nested.blob === null ? null : storedNested(session.id, nested.blob).value;
  const lines = all === null ? runningLines(nested) : storedLines(all, 0, []);
  return (
    <Labelled label={texts.timeline.nested}>
      <div class="share-bar-list">
        {sumsOf(lines).flatMap(({ tool, all: count, done, others }) => [
          <ShareBar key={tool} name={tool} part={done / count} number={`${done}/${count}`} />,
          ...others.map(([form, number]) => (
            <ShareBar
              key={`${tool} ${form}`}
              name={texts.call.outcome(form)}
              part={number / count}
              number={`${number}`}
              kind={form}
            />
          )),
        ])}
      </div>
    </Labelled>
  );
}

/** By tool: how many are done, and how many ended otherwise. */
function sumsOf(lines: readonly NestedLine[]): Sum[] {
  const sums = new Map<string, { all: number; done: number; others: Map<string, number> }>();
  for (const { tool, form, count, ended } of lines) {
    const name = tool || texts.timeline.nestedTool;
    const sum = sums.get(name) ?? { all: 0, done: 0, others: new Map<string, number>() };
    sums.set(name, sum);
    sum.all += count;
    if (form === "completed" || form === "running") sum.done += ended;
    else sum.others.set(form, (sum.others.get(form) ?? 0) + count);
  }
  return [...sums].map(([tool, { all, done, others }]) => ({ tool, all, done, others: [...others] }));
}
