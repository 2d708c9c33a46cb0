/** What a person said in an earlier turn, as it can be said again. */

import type { SessionStore } from "../session/session_store";
import type { DraftContent } from "./unsaved_draft";

/** The message that began the turn; null if it is not loaded. */
export function saidIn(session: SessionStore, turnId: string): DraftContent | null {
  for (const key of session.shown.peek()) {
    const row = session.peek(key);
    if (row?.kind !== "message" || row.turnId !== turnId || row.mode === "steer") continue;
    const attachments = row.attachments.map(({ blob, name, media_type }) => ({
      upload_id: blob,
      name: name || blob,
      media_type,
    }));
    return { text: row.text, attachments };
  }
  return null;
}
