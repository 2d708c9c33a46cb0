/** What the model is told besides the messages, and how full its context is. */

import * as keryx from "../api/keryx";
import type { ContextSize } from "../api/events";
import { Labelled } from "../parts/callbody";
import { Fold } from "../parts/fold";
import { unfoldedOf } from "../parts/unfolded";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { useAsked } from "./asked";
import { Trouble } from "./trouble";

const words = texts.inspector.context;

export function ContextTab({ opened }: { opened: Opened }) {
  const turn = opened.head.turn.value?.turnId ?? null;
  const settings = opened.head.settings.value;
  const { value, problem, again } = useAsked((signal) => keryx.modelContext(opened.id, signal), [turn, settings]);
  // The session's own is as new as the last reply.
  const size = opened.head.context.value ?? value?.context ?? null;
  return (
    <>
      <Labelled label={words.meter}>
        <Meter size={size} />
      </Labelled>
      {problem !== null ? <Trouble problem={problem} onRetry={again} /> : null}
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
        </div>
      )}
      <p class="dim">
        {words.used(used, window)} {compact_at === null ? "" : words.compact(compact_at)}
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
