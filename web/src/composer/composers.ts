/** What is typed in each session, for as long as the page is open. */

import * as keryx from "../api/client";
import type { OutgoingMessage } from "../api/types";
import { beginSession } from "../session/new_session";
import { dropUnsavedTexts } from "../session/unsaved_texts";
import { ComposerState } from "./composer_state";
import { UnsavedDraft } from "./unsaved_draft";

const composers = new Map<string, ComposerState>();

/** The composer of a session, or of the one that its first message will open. */
export function composerOf(id: string | null): ComposerState {
  const key = id ?? "";
  const existing = composers.get(key);
  if (existing !== undefined) return existing;
  const composing = id === null ? newSessionComposing() : sessionComposing(id);
  composers.set(key, composing);
  return composing;
}

function newSessionComposing(): ComposerState {
  return new ComposerState((message) => beginSession({}, (id) => sendFirst(id, message)), null, new UnsavedDraft(""));
}

function sessionComposing(id: string): ComposerState {
  return new ComposerState(
    async (message) => void (await keryx.send(id, message)),
    (text, attachments) => keryx.saveDraft(id, text, attachments),
    new UnsavedDraft(id),
  );
}

/** What was typed while the first message was on its way is meant for the session that it opens. */
async function sendFirst(id: string, message: OutgoingMessage): Promise<void> {
  await keryx.send(id, message);
  const { text } = composerOf(null);
  if (!text.value.startsWith(message.text) || text.value === message.text) return;
  composerOf(id).type(text.value.slice(message.text.length));
  text.value = message.text;
}

/** Saves what is typed anywhere. */
export async function saveAllDrafts(): Promise<void> {
  await Promise.all([...composers.values()].map((composing) => composing.flush()));
}

/** Saves what was typed in a session that is left; an empty composer is not worth keeping. */
export async function leaveComposer(id: string, isShown: () => boolean): Promise<void> {
  const composing = composers.get(id);
  if (composing === undefined) return;
  await composing.flush();
  if (composing.isEmpty && !isShown() && composers.get(id) === composing) composers.delete(id);
}

/** The session is gone, and with it what was typed in it. */
export function dropComposer(id: string): void {
  composers.get(id)?.abandon();
  composers.delete(id);
  dropUnsavedTexts(id);
}
