/** Saying something again in place of an earlier turn: in this session, or in a fork of it. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { newKey, newSessionId } from "../api/ids";
import type { DraftContent } from "../composer/unsaved_draft";
import { go } from "../navigation/route";
import type { SessionStore } from "../session/session_store";
import { attempt } from "../ui/notice";

export interface Replacement {
  readonly session: SessionStore;
  readonly turnId: string;
  readonly content: DraftContent;
  /** Files that the turns changed which make room. */
  readonly paths: readonly string[];
}

/** What waits for a person to say what becomes of the files. */
export const undecided = signal<Replacement | null>(null);

/** Sends it at once if no file is concerned; else the person is asked first. */
export async function replaceTurn(session: SessionStore, turnId: string, content: DraftContent): Promise<void> {
  await attempt(async () => {
    const paths = await changedPaths(session, turnId);
    const replacement = { session, turnId, content, paths };
    if (paths.length > 0) undecided.value = replacement;
    else await sendReplacement(replacement, false);
  });
}

export async function sendReplacement(replacement: Replacement, revert: boolean): Promise<void> {
  const { session, turnId, content } = replacement;
  await keryx.send(session.id, { ...messageOf(content), replaces: turnId, revert });
  session.toNewest();
}

/** The same past in a new session, and another answer there. */
export async function replaceInFork(session: SessionStore, turnId: string, content: DraftContent): Promise<void> {
  await attempt(async () => {
    const id = newSessionId();
    await keryx.fork(session.id, turnId, id);
    await keryx.send(id, { ...messageOf(content), replaces: turnId });
    go(id);
  });
}

function messageOf({ text, attachments }: DraftContent) {
  return { text, attachments: [...attachments], mode: "queue" as const, key: newKey() };
}

async function changedPaths(session: SessionStore, turnId: string): Promise<readonly string[]> {
  const turns = turnsFrom(session, turnId);
  const { changes } = await keryx.fileChanges(session.id);
  return [...new Set(changes.filter((change) => turns.has(change.turn_id ?? "")).map(({ path }) => path))];
}

/** This turn and those after it, which make room together. */
export function turnsFrom(session: SessionStore, turnId: string): ReadonlySet<string> {
  const turns = new Set<string>();
  for (const key of [...session.shown.peek(), ...session.order.peek()]) {
    const id = session.peek(key)?.turnId ?? null;
    if (id !== null && (id === turnId || turns.size > 0)) turns.add(id);
  }
  return turns;
}
