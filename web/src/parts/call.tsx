/** One call as one row: tool, what it works on, how it stands, how long; unfolded, all of it. */

import { cancelCall } from "../api/keryx";
import { attempt } from "../state/app";
import { second } from "../state/clock";
import type { Opened } from "../state/opened";
import type { Call } from "../state/rows";
import { texts } from "../texts";
import { elapsed, seconds } from "../texts/amounts";
import { CallBody, NestedView } from "./callbody";
import { unfoldedOf } from "./unfolded";

export function CallView({ opened, id }: { opened: Opened; id: string }) {
  const call = opened.call(id).value;
  const open = unfoldedOf(`call ${id}`);
  if (call === undefined) return null;
  const shown = call.preview || brief(call.arguments);
  const running = call.phase === "started";
  return (
    <div class={`call ${tone(call)}`}>
      <div class="line">
        <button
          type="button"
          class="fold"
          aria-expanded={open.value}
          onClick={() => {
            open.value = !open.value;
          }}
        >
          <span class="chevron" aria-hidden="true">
            ⟩
          </span>
          <b>{call.tool}</b>{" "}
          <span class="arg">{shown}</span>
        </button>
        <Standing call={call} />
        {running ? (
          <button
            type="button"
            class="x"
            aria-label={texts.call.cancel(call.tool)}
            title={texts.call.cancel(call.tool)}
            onClick={() => void attempt(() => cancelCall(opened.id, id))}
          >
            ✕
          </button>
        ) : (
          <span class="x none" aria-hidden="true" />
        )}
      </div>
      {call.nested !== null && call.nested.began > 0 && call.phase !== "finished" ? (
        <NestedView nested={call.nested} />
      ) : null}
      {running && !open.value && call.output ? <LastLines text={call.output} /> : null}
      {open.value ? <CallBody call={call} sessionId={opened.id} /> : null}
    </div>
  );
}

/** The end of what it prints, so that a running command is seen to run. */
function LastLines({ text }: { text: string }) {
  const lines = text.trimEnd().slice(-2_000).split("\n").slice(-3);
  return <pre class="lastlines">{lines.join("\n")}</pre>;
}

function Standing({ call }: { call: Call }) {
  return (
    <span class="standing">
      {call.nested !== null && call.nested.began > 0 ? (
        <span class="nestedcount">{texts.call.nested(call.nested.began, call.nested.ended)}</span>
      ) : null}
      <span class="state">
        <State call={call} />
      </span>
      <Took call={call} />
    </span>
  );
}

function State({ call }: { call: Call }) {
  if (call.phase !== "finished") return <>{underWay(call)}</>;
  const outcome = call.outcome ?? "unknown";
  if (outcome === "completed") return null;
  if (!call.started && outcome === "cancelled") return <>{texts.call.unstarted}</>;
  const why = [texts.call.why(call.reason), call.settled ? texts.call.settled : ""].filter(Boolean).join(", ");
  return (
    <span>
      {texts.call.outcome(outcome)}
      {why ? <span class="why">: {why}</span> : null}
    </span>
  );
}

function underWay(call: Call): string {
  switch (call.phase) {
    case "writing":
      return texts.call.writing;
    case "asked":
      return call.asking ? texts.call.asking : texts.call.waiting;
    default:
      if (call.asking) return texts.call.asking;
      if (call.done !== null) return `${texts.call.progress(call.done, call.total)} ${call.note}`.trim();
      return call.note || texts.call.running;
  }
}

function Took({ call }: { call: Call }) {
  if (call.phase === "finished") {
    return <span class="num">{call.started && call.duration !== null ? seconds(call.duration) : ""}</span>;
  }
  if (call.phase !== "started" || call.startedAt === null) return <span class="num" />;
  return <Since at={call.startedAt} />;
}

function Since({ at }: { at: number }) {
  return <span class="num">{elapsed(second.value / 1_000 - at)}</span>;
}

function tone(call: Call): string {
  if (call.phase === "finished") return call.outcome ?? "unknown";
  if (call.asking) return "asking";
  return call.phase === "started" ? "running" : "waiting";
}

/** What the arguments say in few words, until the call tells its own preview. */
function brief(text: string): string {
  try {
    const read: unknown = JSON.parse(text);
    if (typeof read !== "object" || read === null) return text;
    const first = Object.values(read).find((value) => value !== null && value !== "");
    const shown = Array.isArray(first) ? first.join(", ") : typeof first === "object" ? "" : String(first ?? "");
    return shown.split("\n", 1)[0]!.slice(0, 200);
  } catch {
    return text.slice(-80);
  }
}
