/** From the call that runs a child agent to the session of that child. */

import * as keryx from "../api/client";
import { Problem } from "../api/problem";
import { texts } from "../texts";

/** The tool that starts child agents, and the nested call that is one of them. */
export const DELEGATE_TOOL = "delegate";
export const AGENT_TOOL = "agent";

const MOST_KEPT = 500;
const cache = new Map<string, string>();

/** The session of the child that this call of the parent session runs; a problem if there is none. */
export async function childSessionOf(parent: string, callId: string): Promise<string> {
  const key = `${parent} ${callId}`;
  for (const archived of [false, true]) {
    let before: number | null = null;
    while (!cache.has(key)) {
      const page = await keryx.childSessions(parent, before, archived);
      for (const { session_id, parent: call } of page.sessions) {
        if (call != null) remember(`${parent} ${call.call_id}`, session_id);
      }
      before = page.next ?? null;
      if (before === null) break;
    }
  }
  const child = cache.get(key);
  if (child === undefined) throw new Problem("not_found", 404, texts.agents.missing);
  return child;
}

function remember(key: string, child: string): void {
  cache.set(key, child);
  if (cache.size > MOST_KEPT) cache.delete(cache.keys().next().value!);
}
