/** What the model reads in place of the earlier part of a session, and the button that makes it so. */

import { useMemo, useState } from "preact/hooks";
import { Button } from "../parts/button";
import { Labelled } from "../parts/callbody";
import { Fold } from "../parts/fold";
import { SummaryText } from "../parts/summary";
import { unfoldedOf } from "../parts/unfolded";
import type { Opened } from "../state/opened";
import type { Summary } from "../state/summaries";
import { sumUp } from "../state/summing";
import { texts } from "../texts";
import { shortTime } from "../texts/amounts";

const words = texts.compaction;

/** What the server says of it; no text: there is none. */
export interface Told {
  readonly text: string;
  readonly tokens: number | null;
}

interface Props {
  opened: Opened;
  /** The line of the transcript that tells it, if that is here. */
  last: Summary | null;
  /** Null until the server has told of this one; until then the line is believed. */
  told: Told | null;
}

export function Earlier({ opened, last, told }: Props) {
  const open = unfoldedOf(`earlier ${opened.id}`);
  const text = told?.text ?? last?.summary ?? "";
  const owner = useMemo(() => ({}), [text]);
  if (text === "") return null;
  const tokens = told?.tokens ?? null;
  return (
    <Labelled label={words.summaryOf(last?.since == null ? "" : shortTime(last.since))} copy={text}>
      <div class="part">
        <Fold open={open}>
          <span class="name">{words.summary}</span>
          <span class="grow" />
          {tokens === null ? null : <small>{words.size(tokens)}</small>}
        </Fold>
        {open.value ? <SummaryText key={text} text={text} owner={owner} /> : null}
      </div>
      <p class="dim">{words.about}</p>
    </Labelled>
  );
}

export function SumUp({ opened }: { opened: Opened }) {
  const [asked, setAsked] = useState(false);
  const busy = asked || opened.head.compacting.value !== null;
  const ask = async (): Promise<void> => {
    setAsked(true);
    await sumUp(opened.id);
    setAsked(false);
  };
  return (
    <Button busy={busy} onClick={() => void ask()}>
      {busy ? words.compacting : words.compactNow}
    </Button>
  );
}
