/** How the next session begins: with which settings, and by which first words. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import type { Opening } from "../api/types";
import { go } from "../navigation/route";

/** How the next session is to begin. */
export const opening = signal<Omit<Opening, "session_id">>({});

let nextSession = newSessionId();

/** The id was minted here, so a second try opens the same session and says the same once. */
export async function beginSession(more: Partial<Opening>, first: (id: string) => Promise<unknown>): Promise<void> {
  const id = more.session_id ?? nextSession;
  await keryx.openSession({ ...opening.value, ...more, session_id: id });
  await first(id);
  if (id === nextSession) nextSession = newSessionId();
  go(id);
}
