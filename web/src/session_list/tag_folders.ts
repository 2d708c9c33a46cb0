/** Tags as folders of the list. Pure. */

import type { SessionSummary, TagCount } from "../api/types";
import { isListed } from "./listed";

export interface Folder {
  readonly name: string;
  /** How many sessions it has, those included that are not loaded yet. */
  readonly count: number;
  /** Those that are loaded, last changed first. */
  readonly ids: readonly string[];
}

/** What two tags have in common if they differ only in case. */
export function tagKey(name: string): string {
  return name.toLowerCase();
}

export function foldersOf(
  sessions: readonly SessionSummary[],
  counts: readonly TagCount[],
  archived: boolean,
): readonly Folder[] {
  const folders = new Map<string, { name: string; count: number; members: SessionSummary[] }>();
  for (const { name, sessions: plain, archived: old } of counts) {
    const count = archived ? old : plain;
    if (count > 0) folders.set(tagKey(name), { name, count, members: [] });
  }
  for (const summary of sessions) {
    if (!isListed(summary, archived)) continue;
    for (const name of summary.tags ?? []) {
      const folder = folders.get(tagKey(name));
      if (folder === undefined) folders.set(tagKey(name), { name, count: 0, members: [summary] });
      else folder.members.push(summary);
    }
  }
  return [...folders.values()]
    .sort((a, b) => a.name.localeCompare(b.name))
    .map(({ name, count, members }) => ({
      name,
      count: Math.max(count, members.length),
      ids: members.sort((a, b) => b.changed_at - a.changed_at).map((summary) => summary.session_id),
    }));
}

/** Whether the counts of tags are other ones after this change. */
export function countsDiffer(before: SessionSummary | undefined, now: SessionSummary): boolean {
  const [old, next] = [before?.tags ?? [], now.tags ?? []];
  if (old.length !== next.length || old.some((name, index) => name !== next[index])) return true;
  return next.length > 0 && before?.archived !== now.archived;
}

/** The tags of a session after some were added and some removed. */
export function changedTags(
  tags: readonly string[],
  added: ReadonlySet<string>,
  removed: ReadonlySet<string>,
): readonly string[] {
  const gone = new Set([...removed].map(tagKey));
  const left = tags.filter((name) => !gone.has(tagKey(name)));
  const has = new Set(left.map(tagKey));
  return [...left, ...[...added].filter((name) => !has.has(tagKey(name)))];
}
