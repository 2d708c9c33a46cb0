/** The summary that stands for the earlier part of a session, as far as its line is here. Pure. */

import type { Compacted, NoteRow, Row } from "./rows";

export interface CompactionSummary extends Compacted {
  readonly key: string;
  /** When what it does not stand for began; null if that is not here. */
  readonly since: number | null;
}

/** The newest one among these rows, which are in order. */
export function lastSummary(rows: readonly Row[]): CompactionSummary | null {
  for (let at = rows.length - 1; at >= 0; at--) {
    const row = rows[at]!;
    if (row.kind === "note" && row.note.what === "compacted") {
      return { ...row.note, key: row.key, since: sinceOf(row, row.note, rows) };
    }
  }
  return null;
}

function sinceOf(line: NoteRow, { upTo }: Compacted, rows: readonly Row[]): number | null {
  // Rows between those that it stands for and these may not be here.
  if (rows[0]!.seq > upTo) return null;
  const next = rows.find((row) => row.seq > upTo) ?? line;
  // When a step began is known only to who was there.
  return next.kind === "step" ? (next.repliedAt ?? next.at) : next.at;
}
