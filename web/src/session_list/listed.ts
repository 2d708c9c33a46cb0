/** Which sessions the list has. Pure. */

import type { SessionSummary } from "../api/types";

/** A child agent is listed only while it waits for somebody. */
export function isListed(summary: SessionSummary, archived: boolean): boolean {
  if (summary.parent != null && summary.state !== "waiting") return false;
  return Boolean(summary.archived) === archived;
}
