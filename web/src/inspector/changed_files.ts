/** The changes of a session by file: the diff of each, and the facts that it is made of. Pure. */

import type { FileChanges } from "../api/types";
import { type FileDiff, parseDiff } from "../ui/diff_parser";

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
  const diffs = parseDiff(diff);
  const fileNotes = [...diff.matchAll(NOTE)].map(([, path, note]) => ({ path, note: note! }));
  const seqs = new Map<string, number[]>();
  for (const { path, seq } of changes) {
    const numbers = seqs.get(path);
    if (numbers === undefined) seqs.set(path, [seq]);
    else numbers.push(seq);
  }
  return [...seqs].map(([path, of]) => {
    const name = within(path, workspace);
    const mine = (file: { path?: string | undefined }): boolean => file.path === name || file.path === path;
    const fileDiff = diffs.find(mine) ?? null;
    const notes = fileNotes.filter(mine).map((fileNote) => fileNote.note);
    return { path: name, diff: fileDiff, notes, isLeft: fileDiff !== null || notes.length > 0, seqs: of };
  });
}

function within(path: string, workspace: string): string {
  const root = workspace.endsWith("/") ? workspace : `${workspace}/`;
  return path.startsWith(root) ? path.slice(root.length) : path;
}
