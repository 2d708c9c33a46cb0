/** What the model is told besides the messages, what stands for the earlier ones, and how full its context is. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import * as keryx from "../api/client";
import type { ContextSize } from "../api/types";
import { Labelled } from "../calls/call_body";
import type { SessionStore } from "../session/session_store";
import { lastSummary } from "../session/summaries";
import { texts } from "../texts";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { useRequest } from "../ui/use_request";
import { CompactMark } from "../usage/usage_chip";
import { LoadError } from "./load_error";
import { MemorySection } from "./memory_section";
import { CompactButton, type ServerSummary, SummarySection } from "./summary_section";

const words = texts.inspector.context;

export function ContextTab({ session }: { session: SessionStore }) {
  const turn = session.head.turn.value?.turnId ?? null;
  const settings = session.head.settings.value;
  const last = useMemo(
    () => computed(() => lastSummary(session.order.value.flatMap((key) => session.peek(key) ?? []))),
    [session],
  ).value;
  const line = last?.key ?? null;
  const ask = async (signal: AbortSignal) => ({ line, ...(await keryx.modelContext(session.id, signal)) });
  const { value, problem, again } = useRequest(ask, [turn, settings, line]);
  // The session's own is as new as the last reply.
  const size = session.head.context.value ?? value?.context ?? null;
  const serverSummary: ServerSummary | null =
    value?.line !== line ? null : { text: value.summary ?? "", tokens: value.summary_tokens ?? null };
  return (
    <>
      <Labelled label={words.meter}>
        <Meter size={size} />
        <CompactButton session={session} />
      </Labelled>
      {problem !== null ? <LoadError problem={problem} onRetry={again} /> : null}
      <MemorySection recalled={value?.recalled ?? null} />
      <SummarySection session={session} last={last} serverSummary={serverSummary} />
      {value === null ? null : (
        <>
          <Labelled label={words.parts}>
            {value.parts.length === 0 ? <p class="text-dim">{words.none}</p> : null}
            {value.parts.map(({ part, text }) => (
              <Part
                key={part}
                part={part}
                text={text}
                most={Math.max(...value.parts.map((part) => part.text.length))}
              />
            ))}
          </Labelled>
          <Labelled label={words.tools(value.tools.length)}>
            <ul class="context-tab-tools">
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
  if (size === null || used === null) return <p class="text-dim">{words.unknown}</p>;
  const { window, compact_at } = size;
  return (
    <>
      {window === null ? null : (
        <div
          class="share-bar-track is-wide"
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
      <p class="text-dim">
        {words.used(used, window)}
        {compact_at === null ? "" : ` · ${texts.compaction.auto(compact_at)}`}
      </p>
    </>
  );
}

function Part({ part, text, most }: { part: string; text: string; most: number }) {
  const open = disclosureOf(`context ${part}`);
  return (
    <div class="context-tab-part">
      <Disclosure open={open}>
        <span class="context-tab-name">{part}</span>
        <span class="share-bar-track" aria-hidden="true">
          <i style={{ width: `${(text.length / Math.max(1, most)) * 100}%` }} />
        </span>
        <small>{words.size(text.length)}</small>
      </Disclosure>
      {open.value ? (
        <pre class="code-output" tabIndex={0} aria-label={part}>
          {text}
        </pre>
      ) : null}
    </div>
  );
}
