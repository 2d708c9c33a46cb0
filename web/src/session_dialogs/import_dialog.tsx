/** Makes sessions of a file. What is wrong with the file is said here. */

import { useEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { ImportedSessions } from "../api/types";
import { listShown } from "../navigation/panels";
import { go } from "../navigation/route";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refusal } from "../ui/refusal";

export function ImportDialog({ onClose }: { onClose: () => void }) {
  const words = texts.importing;
  const [file, setFile] = useState<File | null>(null);
  const [answer, setAnswer] = useState<ImportedSessions | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const abort = useRef(new AbortController());
  useEffect(() => () => abort.current.abort(), []);
  const send = async (chosen: File): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      const imported = await keryx.importSessions(chosen, chosen.name, abort.current.signal);
      sessions.add(imported.sessions);
      setAnswer(imported);
    } catch (error) {
      if (!abort.current.signal.aborted) setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  const first = answer?.sessions[0];
  return (
    <Dialog title={words.title} onClose={onClose}>
      <h2>{words.title}</h2>
      {answer === null ? (
        <>
          <p class="text-dim">{words.lead}</p>
          <input
            type="file"
            class="session-dialogs-file"
            aria-label={words.file}
            accept=".json,.jsonl,.ndjson,.zip,application/json"
            onChange={(event) => {
              setProblem(null);
              setFile(event.currentTarget.files?.[0] ?? null);
            }}
          />
        </>
      ) : (
        <div role="status">
          <p>{words.done(answer.sessions.length)}</p>
          {answer.left_out === 0 ? null : <p class="text-dim">{words.leftOut(answer.left_out)}</p>}
        </div>
      )}
      {problem === null ? null : <Refusal problem={problem} />}
      <div class="layout-buttons">
        <Button onClick={onClose}>{answer === null ? texts.cancel : texts.close}</Button>
        {answer === null ? (
          <Button kind="main" busy={busy} disabled={file === null} onClick={() => file !== null && void send(file)}>
            {words.confirm}
          </Button>
        ) : first === undefined ? null : (
          <Button
            kind="main"
            onClick={() => {
              go(first.session_id);
              listShown.value = false;
              onClose();
            }}
          >
            {words.open}
          </Button>
        )}
      </div>
    </Dialog>
  );
}
