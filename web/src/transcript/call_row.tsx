/** One call as one row: tool, what it works on, how it stands, how long; unfolded, all of it. */

import { cancelCall } from "../api/client";
import { argumentsPreview } from "../calls/arguments_preview";
import { CallBody } from "../calls/call_body";
import { choose, isChosen } from "../inspector/selection";
import type { Call } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import type { Axis } from "../timeline/axis";
import { barOf, formOf } from "../timeline/bars";
import { Bars } from "../timeline/lane";
import { NestedRows } from "../timeline/nested_calls";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { Elapsed } from "../ui/elapsed";
import { attempt } from "../ui/notice";

interface Props {
  session: SessionStore;
  id: string;
  axis: Axis;
  /** Whether a person ran it, who wants to see what it prints. */
  isOwn?: boolean;
}

export function CallView({ session, id, axis, isOwn = false }: Props) {
  const call = session.call(id).value;
  const open = disclosureOf(`call ${id}`, isOwn);
  if (call === undefined) return null;
  const shown = call.preview || argumentsPreview(call.tool, call.arguments);
  const running = call.phase === "started";
  return (
    <div class={`call-row is-${tone(call)}`} role="group" aria-label={call.tool}>
      <div class={isChosen(id).value ? "call-line is-selected" : "call-line"}>
        <Disclosure open={open}>
          <b>{call.tool}</b>{" "}
          <span class="call-line-argument" dir="auto">
            {shown}
          </span>
        </Disclosure>
        <Standing call={call} />
        <Lane call={call} axis={axis} />
        {running ? (
          <button
            type="button"
            class="button-x"
            aria-label={texts.call.cancel(call.tool)}
            title={texts.call.cancel(call.tool)}
            onClick={() => void attempt(() => cancelCall(session.id, id))}
          >
            ✕
          </button>
        ) : (
          <span class="button-x" aria-hidden="true" />
        )}
        {shown ? (
          <span class="call-line-below" aria-hidden="true" dir="auto">
            {shown}
          </span>
        ) : null}
      </div>
      {call.nested !== null && call.nested.began > 0 ? <NestedRows session={session} call={call} axis={axis} /> : null}
      {running && !open.value && call.output ? <LastLines text={call.output} /> : null}
      {open.value ? <CallBody call={call} sessionId={session.id} /> : null}
    </div>
  );
}

/** The end of what it prints, so that a running command is seen to run. */
function LastLines({ text }: { text: string }) {
  const lines = text.trimEnd().slice(-2_000).split("\n").slice(-3);
  return (
    <pre class="call-row-output" dir="auto">
      {lines.join("\n")}
    </pre>
  );
}

/** The bar, which leads to all there is to know of the call. */
function Lane({ call, axis }: { call: Call; axis: Axis }) {
  const bar = barOf(call, axis.origin.value);
  const name = texts.timeline.details(call.tool);
  return (
    <button type="button" class="lane" aria-label={name} title={name} onClick={() => choose(call.callId)}>
      {bar === null ? null : <Bars axis={axis} form={bar.form} start={bar.start} end={bar.end} />}
    </button>
  );
}

function Standing({ call }: { call: Call }) {
  return (
    <span class="call-line-standing">
      {call.nested !== null && call.nested.began > 0 ? (
        <span class="text-hidden">{texts.call.nested(call.nested.began, call.nested.completed)}</span>
      ) : null}
      <span class="call-line-state">
        <State call={call} />
      </span>
      <Took call={call} />
    </span>
  );
}

function State({ call }: { call: Call }) {
  if (call.asking && call.phase !== "finished") return <Asking />;
  if (call.phase !== "finished") {
    // The bar moves, which says the same to those who see it.
    const plain = call.phase === "started" && call.done === null && !call.note;
    return plain ? <span class="text-hidden">{underWay(call)}</span> : underWay(call);
  }
  const outcome = call.outcome ?? "unknown";
  if (call.exitCode !== null) return <>{texts.call.exited(call.exitCode)}</>;
  if (outcome === "completed") return null;
  if (!call.started && outcome === "cancelled") return <>{texts.call.notStarted}</>;
  const why = texts.call.why(outcome, call.reason, call.settled);
  return (
    <span>
      {texts.call.outcome(outcome)}
      {why ? <span class="call-line-why">{why}</span> : null}
    </span>
  );
}

function Asking() {
  return (
    <span>
      {texts.call.waiting}
      <span class="call-line-why">{texts.call.forYou}</span>
    </span>
  );
}

function underWay(call: Call): string {
  switch (call.phase) {
    case "writing":
      return texts.call.preparing;
    case "asked":
      return texts.call.queued;
    default:
      if (call.done !== null) return `${texts.call.progress(call.done, call.total)} ${call.note}`.trim();
      return call.note || texts.call.running;
  }
}

function Took({ call }: { call: Call }) {
  if (call.phase === "finished") {
    return <span class="elapsed">{call.started && call.duration !== null ? seconds(call.duration) : ""}</span>;
  }
  if (call.phase !== "started" || call.startedAt === null) return <span class="elapsed" />;
  return <Elapsed at={call.startedAt} />;
}

function tone(call: Call): string {
  if (call.phase === "finished") return formOf(call);
  if (call.asking) return "asking";
  return call.phase === "started" ? "running" : "waiting";
}
