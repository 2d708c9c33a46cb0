/** What is typed in each session, for as long as the page is open. */

import * as keryx from "../api/client";
import type { Outgoing } from "../api/shapes";
import { beginSession } from "../session/new_session";
import { Composing } from "./composer_state";
import { Unsaved } from "./unsaved_draft";

const composings = new Map<string, Composing>();

/** The composer of a session, or of the one that its first message will open. */
export function composingOf(id: string | null): Composing {
  const key = id ?? "";
  const existing = composings.get(key);
  if (existing !== undefined) return existing;
  const composing = id === null ? newSessionComposing() : sessionComposing(id);
  composings.set(key, composing);
  return composing;
}

function newSessionComposing(): Composing {
  return new Composing((message) => beginSession({}, (id) => sendFirst(id, message)), null, new Unsaved(""));
}

function sessionComposing(id: string): Composing {
  return new Composing(
    async (message) => void (await keryx.send(id, message)),
    (text, attachments) => keryx.saveDraft(id, text, attachments),
    new Unsaved(id),
  );
}

/** What was typed while the first message was on its way is meant for the session that it opens. */
async function sendFirst(id: string, message: Outgoing): Promise<void> {
  await keryx.send(id, message);
  const { text } = composingOf(null);
  if (!text.value.startsWith(message.text) || text.value === message.text) return;
  composingOf(id).type(text.value.slice(message.text.length));
  text.value = message.text;
}

/** Saves what is typed anywhere. */
export async function saveAllDrafts(): Promise<void> {
  await Promise.all([...composings.values()].map((composing) => composing.flush()));
}

/** Saves what was typed in a session that is left; an empty composer is not worth keeping. */
export async function leaveComposer(id: string, isShown: () => boolean): Promise<void> {
  const composing = composings.get(id);
  if (composing === undefined) return;
  await composing.flush();
  if (composing.isEmpty && !isShown() && composings.get(id) === composing) composings.delete(id);
}

/** The session is gone, and with it what was typed in it. */
export function dropComposer(id: string): void {
  composings.get(id)?.abandon();
  composings.delete(id);
}
