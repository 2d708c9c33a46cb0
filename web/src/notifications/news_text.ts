/** Which changes of a session are worth telling to whoever looks elsewhere. Pure. */

import type { SessionSummary } from "../api/types";
import { texts } from "../texts";

/** What is worth telling of this change, if anything. */
export function newsText(before: SessionSummary, now: SessionSummary): string | null {
  if (before.state === now.state) return null;
  const title = now.title || texts.list.untitled;
  if (now.state === "waiting") return texts.notifications.waiting(title);
  if (now.state === "running") return null;
  return now.failed ? texts.notifications.failed(title) : texts.notifications.done(title);
}
