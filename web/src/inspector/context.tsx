/** What the model is told besides the messages, what stands for the earlier ones, and how full its context is. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as keryx from "../api/keryx";
import type { ContextSize } from "../api/events";
import { Labelled } from "../parts/callbody";
import { Fold } from "../parts/fold";
import { unfoldedOf } from "../parts/unfolded";
import type { Opened } from "../state/opened";
import { lastSummary } from "../state/summaries";
import { texts } from "../texts";
import { CompactMark } from "../usage/chip";
import { useAsked } from "./asked";
import { Earlier, SumUp, type Told } from "./earlier";
import { Trouble } from "./trouble";

const words = texts.inspector.context;

export function ContextTab({ opened }: { opened: Opened }) {
  const turn = opened.head.turn.value?.turnId ?? null;
  const settings = opened.head.settings.value;
  const last = useMemo(
    () => computed(() => lastSummary(opened.order.value.flatMap((key) => opened.peek(key) ?? []))),
    [opened],
  ).value;
  const line = last?.key ?? null;
  const ask = async (signal: AbortSignal) => ({ line, ...(await keryx.modelContext(opened.id, signal)) });
  const { value, problem, again } = useAsked(ask, [turn, settings, line]);
  // The session's own is as new as the last reply.
  const size = opened.head.context.value ?? value?.context ?? null;
  const told: Told | null = value?.line !== line ? null : { text: value.summary ?? "", tokens: value.summary_tokens ?? null };
  return (
    <>
      <Labelled label={words.meter}>
        <Meter size={size} />
        <SumUp opened={opened} />
      </Labelled>
      {problem !== null ? <Trouble problem={problem} onRetry={again} /> : null}
      <Earlier opened={opened} last={last} told={told} />
      {value === null ? null : (
        <>
          <Labelled label={words.parts}>
            {value.parts.length === 0 ? <p class="dim">{words.none}</p> : null}
            {value.parts.map(({ part, text }) => (
              <Part key={part} part={part} text={text} most={Math.max(...value.parts.map((each) => each.text.length))} />
            ))}
          </Labelled>
          <Labelled label={words.tools(value.tools.length)}>
            <ul class="toolnames">
              {value.tools.map((name) => (
                <li key={name}>{name}</li>
              ))}
            </ul>
          </Labelled>
        </>
      )}
    </>
  );
}

function Meter({ size }: { size: ContextSize | null }) {
  const used = size?.last_prompt_tokens ?? null;
  if (size === null || used === null) return <p class="dim">{words.unknown}</p>;
  const { window, compact_at } = size;
  return (
    <>
      {window === null ? null : (
        <div
          class="track wide"
          role="meter"
          aria-label={words.meter}
          aria-valuemin={0}
          aria-valuemax={window}
          aria-valuenow={used}
        >
          <i style={{ width: `${Math.min(1, used / window) * 100}%` }} />
          <CompactMark context={size} />
        </div>
      )}
      <p class="dim">
        {words.used(used, window)}
        {compact_at === null ? "" : ` · ${texts.compaction.auto(compact_at)}`}
      </p>
    </>
  );
}

function Part({ part, text, most }: { part: string; text: string; most: number }) {
  const open = unfoldedOf(`context ${part}`);
  return (
    <div class="part">
      <Fold open={open}>
        <span class="name">{part}</span>
        <span class="track" aria-hidden="true">
          <i style={{ width: `${(text.length / Math.max(1, most)) * 100}%` }} />
        </span>
        <small>{words.size(text.length)}</small>
      </Fold>
      {open.value ? (
        <pre class="output" tabIndex={0} aria-label={part}>
          {text}
        </pre>
      ) : null}
    </div>
  );
}
