/** The changes of a session by file: the diff of each, and the facts that it is made of. Pure. */

import type { FileChanges } from "../api/shapes";
import { type FileDiff, filesOf } from "../ui/diff_parser";

export interface ChangedFile {
  readonly path: string;
  /** Null if it is as it was before, or cannot be compared; then a note says why. */
  readonly diff: FileDiff | null;
  readonly notes: readonly string[];
  readonly isLeft: boolean;
  readonly seqs: readonly number[];
}

/** Lines of a diff begin otherwise. */
const NOTE = /^# (.+): (.+)$/gm;

/** In the order in which they were first changed. Facts name whole paths, a diff those it is asked for. */
export function changedFiles({ diff, changes }: FileChanges, workspace: string): ChangedFile[] {
  const diffs = filesOf(diff);
  const told = [...diff.matchAll(NOTE)].map(([, path, note]) => ({ path, note: note! }));
  const seqs = new Map<string, number[]>();
  for (const { path, seq } of changes) {
    const known = seqs.get(path);
    if (known === undefined) seqs.set(path, [seq]);
    else known.push(seq);
  }
  return [...seqs].map(([path, of]) => {
    const name = within(path, workspace);
    const mine = (each: { path?: string | undefined }): boolean => each.path === name || each.path === path;
    const found = diffs.find(mine) ?? null;
    const notes = told.filter(mine).map((each) => each.note);
    return { path: name, diff: found, notes, isLeft: found !== null || notes.length > 0, seqs: of };
  });
}

function within(path: string, workspace: string): string {
  const root = workspace.endsWith("/") ? workspace : `${workspace}/`;
  return path.startsWith(root) ? path.slice(root.length) : path;
}
