/** A diff, file by file: what was removed and what was added, by sign as well as by colour. */

import { texts } from "../texts";
import type { DiffLine, FileDiff } from "./diff_parser";

/** More lines of one file than this are counted, not shown. */
const MOST_LINES = 800;
const SIGNS: Record<DiffLine["kind"], string> = { same: " ", add: "+", remove: "−", place: "" };

export function Diff({ files }: { files: readonly FileDiff[] }) {
  return (
    <div class="diff">
      {files.map((file, index) => (
        <figure key={index}>
          <figcaption>
            <DiffTitle file={file} />
          </figcaption>
          <DiffLines file={file} />
        </figure>
      ))}
    </div>
  );
}

export function DiffTitle({ file }: { file: FileDiff }) {
  const { diff } = texts;
  return (
    <>
      <span class="diff-path" dir="auto">
        {file.path}
      </span>
      {file.change === "changed" ? null : <small>{diff[file.change]}</small>}
      {file.movedTo === null ? null : <small>{diff.moved(file.movedTo)}</small>}
      <span class="layout-grow" />
      <span class="diff-counts" role="img" aria-label={diff.lines(file.added, file.removed)}>
        {file.added > 0 ? <span class="is-add">+{file.added}</span> : null}
        {file.removed > 0 ? <span class="is-remove">−{file.removed}</span> : null}
      </span>
    </>
  );
}

export function DiffLines({ file }: { file: FileDiff }) {
  const shown = file.lines.slice(0, MOST_LINES);
  const hidden = file.lines.length - shown.length;
  if (shown.length === 0) return null;
  return (
    <pre tabIndex={0} dir="ltr" aria-label={texts.diff.label(file.path)}>
      {shown.map(({ kind, text }, index) => (
        <span key={index} class={`diff-line is-${kind}`}>
          <span class="diff-sign">{SIGNS[kind]}</span>
          {text}
          {"\n"}
        </span>
      ))}
      {hidden > 0 ? <span class="diff-line is-place">{texts.diff.more(hidden)}</span> : null}
    </pre>
  );
}
