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
  /** Tries of the same have the same. */
  readonly key: string;
}

/** One that waits for the person to decide about the files. */
export interface UndecidedReplacement extends Replacement {
  /** Told once whether it was sent, or given up. */
  readonly onDecided: (isSent: boolean) => void;
}

/** What waits for a person to say what becomes of the files. */
export const undecided = signal<UndecidedReplacement | null>(null);

/**
 * Sends it at once if no file is concerned; else the person is asked first. False: the person has given it
 * up. Throws if it could not be sent.
 */
export async function replaceTurn(
  session: SessionStore,
  turnId: string,
  content: DraftContent,
  key = newKey(),
): Promise<boolean> {
  const paths = await changedPaths(session, turnId);
  const replacement = { session, turnId, content, paths, key };
  if (paths.length === 0) {
    await sendReplacement(replacement, false);
    return true;
  }
  return new Promise((onDecided) => {
    undecided.value = { ...replacement, onDecided };
  });
}

export async function sendReplacement(replacement: Replacement, revert: boolean): Promise<void> {
  const { session, turnId, content, key } = replacement;
  await keryx.send(session.id, { ...messageOf(content, key), replaces: turnId, revert });
  session.toNewest();
}

/** The same past in a new session, and another answer there. */
export async function replaceInFork(session: SessionStore, turnId: string, content: DraftContent): Promise<void> {
  await attempt(async () => {
    const id = newSessionId();
    await keryx.fork(session.id, turnId, id);
    await keryx.send(id, { ...messageOf(content, newKey()), replaces: turnId });
    go(id);
  });
}

function messageOf({ text, attachments }: DraftContent, key: string) {
  return { text, attachments: [...attachments], mode: "queue" as const, key };
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
