/** Offers the tiny model of the server's machine: with one click it is downloaded and answers. */

import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import type { LocalModel } from "../api/types";
import { texts } from "../texts";
import { sentence } from "../texts/sentences";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { chatWithLocalModel, localModel, lookForLocalModel } from "./local_model";

const MEGABYTE = 1e6;

export function LocalModelCard({ onChosen }: { onChosen?: () => void }) {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { title, lead } = texts.setup.local;
  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await work();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const chat = async (): Promise<void> => {
    await chatWithLocalModel();
    if (localModel.peek()?.state === "ready") onChosen?.();
  };
  useEffect(() => void attempt(lookForLocalModel), []);
  return (
    <section class="model-sources-card local-model-card" aria-label={title}>
      <h2>{title}</h2>
      <p class="text-dim">{lead}</p>
      {problem === null ? null : <Refusal problem={problem} />}
      <State local={localModel.value} busy={busy} failed={problem !== null} onChat={() => void attempt(chat)} />
    </section>
  );
}

interface StateProps {
  local: LocalModel | null;
  busy: boolean;
  failed: boolean;
  onChat: () => void;
}

function State({ local, busy, failed, onChat }: StateProps) {
  const words = texts.setup.local;
  if (local === null && !failed) return <p class="text-dim">{words.searching}</p>;
  if (local?.state === "unavailable") return <Missing local={local} />;
  if (local?.state === "pulling") return <Progress local={local} />;
  const label = failed || local?.state === "failed" ? words.again : local?.state === "ready" ? words.chat : words.start;
  return (
    <>
      {local?.state === "failed" && !failed ? (
        <div class="refusal" role="alert">
          <p class="text-error">{sentence(local.problem)}</p>
          {local.hint ? <p class="text-dim">{sentence(local.hint)}</p> : null}
        </div>
      ) : null}
      <Button kind="main" disabled={busy} onClick={onChat}>
        {label}
      </Button>
    </>
  );
}

function Missing({ local }: { local: LocalModel }) {
  return (
    <>
      <p class="text-dim">
        {sentence(local.problem)} {texts.setup.local.install}
      </p>
      <code class="local-model-card-command">{local.hint}</code>
    </>
  );
}

function Progress({ local }: { local: LocalModel }) {
  const { progress, amount } = texts.setup.local;
  const done = (local.done / MEGABYTE).toFixed(0);
  return (
    <div class="local-model-card-progress">
      <progress aria-label={progress} value={local.done} max={local.total} />
      <span class="text-dim">{amount(done, (local.total / MEGABYTE).toFixed(0))}</span>
    </div>
  );
}
