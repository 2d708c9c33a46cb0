/**
 * What is typed and not on the server yet: kept in this tab, so that a page that is left loses
 * nothing. It refuses to know when anything is saved.
 */

import type { AttachedUpload } from "../api/types";

export interface DraftContent {
  readonly text: string;
  readonly attachments: readonly AttachedUpload[];
}

interface StoredDraft extends DraftContent {
  /** The drafts of the server that this goes on from; none while nobody knows what was saved. */
  readonly after: readonly string[];
}

const PREFIX = "keryx.unsaved.";
/** Drafts that may be what the server has: the last that was read, and those on their way to it. */
const MOST_AFTER = 4;

export class UnsavedDraft {
  private readonly key: string;
  private after: readonly string[] = [];

  constructor(id: string) {
    this.key = PREFIX + id;
  }

  /** What the page that was here before left behind. */
  take(): DraftContent | null {
    const stored = read(this.key);
    this.after = stored?.after ?? [];
    return stored;
  }

  put(content: DraftContent): void {
    const isNothing = content.text === "" && content.attachments.length === 0 && this.after.length === 0;
    write(this.key, isNothing ? null : { ...content, after: this.after });
  }

  /** Whether what is typed goes on from some draft that is known, or from none yet. */
  get isBegun(): boolean {
    return this.after.length > 0;
  }

  /** Whether what is typed is what became of this draft. */
  knows(draft: DraftContent): boolean {
    return this.after.includes(mark(draft));
  }

  /** From now on, this may be the draft that the server has. */
  follows(draft: DraftContent): void {
    this.after = [...this.after, mark(draft)].slice(-MOST_AFTER);
  }

  /** The server has this; `newer` is what was typed since. */
  saved(draft: DraftContent, newer: DraftContent | null): void {
    // Those that came later may still be on their way.
    this.after = this.after.slice(this.after.lastIndexOf(mark(draft)));
    if (newer === null) this.forget();
    else this.put(newer);
  }

  forget(): void {
    write(this.key, null);
  }
}

/** Whoever comes next to this tab finds nothing. */
export function forgetAllDrafts(): void {
  try {
    const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));
    for (const key of keys) sessionStorage.removeItem(key);
  } catch {
    // Where storage is forbidden, nothing is kept.
  }
}

export function isSameContent(one: DraftContent, other: DraftContent): boolean {
  return mark(one) === mark(other);
}

function mark({ text, attachments }: DraftContent): string {
  return JSON.stringify([text, ...attachments.map((attachment) => attachment.upload_id)]);
}

function read(key: string): StoredDraft | null {
  try {
    return JSON.parse(sessionStorage.getItem(key) ?? "null") as StoredDraft | null;
  } catch {
    return null;
  }
}

function write(key: string, stored: StoredDraft | null): void {
  try {
    if (stored === null) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(stored));
  } catch {
    // Storage may be forbidden or full; then it is there until the page is left.
  }
}
