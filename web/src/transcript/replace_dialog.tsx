/** What becomes of files that a turn changed, when another answer takes its place. */

import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refusal } from "../ui/refusal";
import { sendReplacement, type UndecidedReplacement, undecided } from "./replacing";

export function ReplaceDialog() {
  const replacement = undecided.value;
  return replacement === null ? null : <Asking key={replacement.turnId} replacement={replacement} />;
}

function Asking({ replacement }: { replacement: UndecidedReplacement }) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const decide = (isSent: boolean): void => {
    undecided.value = null;
    replacement.onDecided(isSent);
  };
  const close = (): void => decide(false);
  const send = async (revert: boolean): Promise<void> => {
    setBusy(true);
    try {
      await sendReplacement(replacement, revert);
      decide(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const words = texts.replacing;
  return (
    <Dialog title={words.title} onClose={close}>
      <h2>{words.title}</h2>
      <p>{words.body(replacement.paths.length)}</p>
      <ul class="replace-dialog-paths">
        {replacement.paths.map((path) => (
          <li key={path} dir="auto">
            {path}
          </li>
        ))}
      </ul>
      {problem === null ? null : <Refusal problem={problem} lead={words.refused} />}
      <div class="layout-buttons">
        <Button onClick={close}>{texts.cancel}</Button>
        <Button busy={busy} onClick={() => void send(false)}>
          {words.keep}
        </Button>
        {problem === null ? (
          <Button kind="main" busy={busy} onClick={() => void send(true)}>
            {words.revert}
          </Button>
        ) : null}
      </div>
    </Dialog>
  );
}
