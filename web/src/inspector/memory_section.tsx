/** What the memory gave to the turn, and who did not answer in time. */

import type { MemoryRecalled } from "../api/types";
import { Labelled } from "../calls/call_body";
import { addressOf } from "../navigation/route";
import { texts } from "../texts";
import { shortTime } from "../texts/amounts";

const words = texts.memory;

export function MemorySection({ recalled }: { recalled: MemoryRecalled | null }) {
  if (recalled === null) return null;
  const memories = recalled.memories ?? [];
  const late = recalled.late ?? [];
  return (
    <Labelled label={words.given.label}>
      {memories.length === 0 ? <p class="text-dim">{words.given.none}</p> : null}
      <ul class="memory-section" aria-label={words.given.label}>
        {memories.map(({ memory_id, text, trust, provider, session_id = "", at = 0 }) => (
          <li key={memory_id}>
            <span dir="auto">{text}</span>
            <small>
              {provider} · {words.trust[trust]}
              {session_id === "" ? null : (
                <>
                  {" · "}
                  <a href={addressOf(session_id)}>{shortTime(at)}</a>
                </>
              )}
            </small>
          </li>
        ))}
      </ul>
      {late.length === 0 ? null : <p class="memory-section-late">{words.given.late(late.join(", "))}</p>}
    </Labelled>
  );
}
