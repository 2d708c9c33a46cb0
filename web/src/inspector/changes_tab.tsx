/** What this session changed on the disk, as a diff, and the way back. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { DiffLines, DiffTitle } from "../ui/diff";
import { disclosureOf } from "../ui/disclosure_state";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { type ChangedFile, changedFiles } from "./changed_files";
import { LoadError } from "./load_error";

const words = texts.inspector.changes;

export function ChangesTab({ session }: { session: SessionStore }) {
  const changed = session.filesChanged.value;
  const { value, problem, again } = useRequest((signal) => keryx.fileChanges(session.id, signal), [changed]);
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set());
  const [reverting, setReverting] = useState<readonly ChangedFile[] | null>(null);
  if (problem !== null) return <LoadError problem={problem} onRetry={again} />;
  if (value === null) return <p class="text-dim">{texts.loading}</p>;
  const files = changedFiles(value, session.head.settings.value.workspace);
  if (files.length === 0) return <p class="text-dim">{words.none}</p>;
  const left = files.filter((file) => file.isLeft);
  const picked = left.filter((file) => selected.has(file.path));
  const toggle = (path: string): void => {
    const next = new Set(selected);
    if (!next.delete(path)) next.add(path);
    setSelected(next);
  };
  return (
    <>
      <div class="changes-tab-head">
        <span class="text-dim">{left.length === 0 ? words.allReverted : words.files(left.length)}</span>
        <span class="layout-grow" />
        {picked.length > 0 ? (
          <Button kind="stop" onClick={() => setReverting(picked)}>
            {words.revert(picked.length)}
          </Button>
        ) : left.length > 0 ? (
          <Button onClick={() => setReverting(left)}>{words.revertAll}</Button>
        ) : null}
      </div>
      {files.map((file) => (
        <Changed
          key={file.path}
          file={file}
          selected={selected.has(file.path)}
          onSelect={() => toggle(file.path)}
          name={`changed ${session.id} ${file.path}`}
        />
      ))}
      {reverting === null ? null : (
        <Reverting
          sessionId={session.id}
          files={reverting}
          onClose={(done) => {
            setReverting(null);
            if (!done) return;
            setSelected(new Set());
            again();
          }}
        />
      )}
    </>
  );
}

interface ChangedProps {
  file: ChangedFile;
  selected: boolean;
  onSelect: () => void;
  name: string;
}

/** Unfolded unless it was folded: the name says what the reader did to it. */
function Changed({ file, selected, onSelect, name }: ChangedProps) {
  const folded = disclosureOf(name);
  const { diff } = file;
  return (
    <section class="changes-tab-file" aria-label={file.path}>
      <div class="changes-tab-file-head">
        {!file.isLeft ? null : (
          <input type="checkbox" aria-label={words.select(file.path)} checked={selected} onChange={onSelect} />
        )}
        {diff === null ? (
          <>
            <span class="diff-path" dir="auto">
              {file.path}
            </span>
            {file.isLeft ? null : <small>{words.same}</small>}
          </>
        ) : (
          <button
            type="button"
            class="disclosure"
            aria-expanded={!folded.value}
            title={words.times(file.seqs.length)}
            onClick={() => {
              folded.value = !folded.value;
            }}
          >
            <DiffTitle file={diff} />
          </button>
        )}
      </div>
      {file.notes.map((note) => (
        <p key={note} class="changes-tab-note" dir="auto">
          {note}
        </p>
      ))}
      {diff === null || folded.value ? null : <DiffLines file={diff} />}
    </section>
  );
}

interface RevertingProps {
  sessionId: string;
  files: readonly ChangedFile[];
  onClose: (done: boolean) => void;
}

function Reverting({ sessionId, files, onClose }: RevertingProps) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const revert = async (): Promise<void> => {
    setBusy(true);
    try {
      await keryx.revert(
        sessionId,
        files.flatMap((file) => file.seqs),
      );
      onClose(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const title = words.title(files.length);
  return (
    <Dialog title={title} onClose={() => onClose(false)}>
      <h2>{title}</h2>
      <p>{words.body}</p>
      <ul class="changes-tab-reverting">
        {files.map((file) => (
          <li key={file.path}>
            <code dir="auto">{file.path}</code>
          </li>
        ))}
      </ul>
      {problem === null ? null : <Refusal problem={problem} />}
      <div class="layout-buttons">
        <Button onClick={() => onClose(false)}>{texts.cancel}</Button>
        <Button kind="stop" busy={busy} onClick={() => void revert()}>
          {words.confirm}
        </Button>
      </div>
    </Dialog>
  );
}
