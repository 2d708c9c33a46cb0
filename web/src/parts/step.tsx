/** A step: the reply and the calls that it asked for. The same for a live one and a settled one. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Opened } from "../state/opened";
import type { StepRow } from "../state/rows";
import { texts } from "../texts";
import { CallView } from "./call";
import { Markdown } from "./markdown/markdown";
import { unfoldedOf } from "./unfolded";

export function StepView({ opened, row }: { opened: Opened; row: StepRow }) {
  const silent = row.text === "" && row.calls.length === 0;
  return (
    <article class="step" aria-label={texts.transcript.reply} aria-busy={row.live}>
      {row.reasoning ? <Reasoning row={row} /> : null}
      {row.live && silent && !row.reasoning ? <p class="thinking">{texts.transcript.thinking}</p> : null}
      {row.text ? <Markdown text={row.text} whole={!row.live} owner={row} /> : null}
      {row.cut ? <p class="cut">{texts.transcript.cut}</p> : null}
      {row.calls.length > 0 ? <Calls opened={opened} ids={row.calls} /> : null}
    </article>
  );
}

function Reasoning({ row }: { row: StepRow }) {
  const open = unfoldedOf(`reasoning ${row.key}`);
  const thinking = row.live && row.text === "" && row.calls.length === 0;
  return (
    <div class="reasoning">
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
        {thinking ? <span class="thinking">{texts.transcript.thinking}</span> : texts.transcript.reasoning}
      </button>
      {open.value ? <div class="thought">{row.reasoning}</div> : null}
    </div>
  );
}

function Calls({ opened, ids }: { opened: Opened; ids: readonly string[] }) {
  const running = useMemo(
    () => computed(() => ids.filter((id) => opened.call(id).value?.phase === "started").length),
    [opened, ids],
  );
  return (
    <div class="calls" role="group" aria-label={texts.transcript.steps(ids.length, 0)}>
      {ids.length > 1 ? <div class="top">{texts.transcript.steps(ids.length, running.value)}</div> : null}
      {ids.map((id) => (
        <CallView key={id} opened={opened} id={id} />
      ))}
    </div>
  );
}
