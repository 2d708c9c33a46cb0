/** What the model reads in place of the earlier part of a session, and the button that makes it so. */

import { useMemo, useState } from "preact/hooks";
import { Labelled } from "../calls/call_body";
import { compact } from "../session/compact";
import type { SessionStore } from "../session/session_store";
import type { CompactionSummary } from "../session/summaries";
import { texts } from "../texts";
import { shortTime } from "../texts/amounts";
import { Button } from "../ui/button";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { SummaryText } from "../ui/summary_text";

const words = texts.compaction;

/** What the server says of it; no text: there is none. */
export interface ServerSummary {
  readonly text: string;
  readonly tokens: number | null;
}

interface Props {
  session: SessionStore;
  /** The line of the transcript that tells it, if that is here. */
  last: CompactionSummary | null;
  /** Null until the server has told of this one; until then the line is believed. */
  serverSummary: ServerSummary | null;
}

export function SummarySection({ session, last, serverSummary }: Props) {
  const open = disclosureOf(`earlier ${session.id}`);
  const text = serverSummary?.text ?? last?.summary ?? "";
  const owner = useMemo(() => ({}), [text]);
  if (text === "") return null;
  const tokens = serverSummary?.tokens ?? null;
  return (
    <Labelled label={words.summaryOf(last?.since == null ? "" : shortTime(last.since))} copy={text}>
      <div class="context-tab-part">
        <Disclosure open={open}>
          <span class="context-tab-name">{words.summary}</span>
          <span class="layout-grow" />
          {tokens === null ? null : <small>{words.size(tokens)}</small>}
        </Disclosure>
        {open.value ? <SummaryText key={text} text={text} owner={owner} /> : null}
      </div>
      <p class="text-dim">{words.about}</p>
    </Labelled>
  );
}

export function CompactButton({ session }: { session: SessionStore }) {
  const [requested, setRequested] = useState(false);
  const busy = requested || session.head.compacting.value !== null;
  const ask = async (): Promise<void> => {
    setRequested(true);
    await compact(session.id);
    setRequested(false);
  };
  return (
    <Button busy={busy} onClick={() => void ask()}>
      {busy ? words.compacting : words.compactNow}
    </Button>
  );
}
