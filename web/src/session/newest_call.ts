/** The call that a session made last, as far as its end is loaded. */

import type { SessionStore } from "./session_store";

/** Read within a signal's effect, it is told anew when there is a newer one. */
export function newestCall(session: SessionStore): string | null {
  const order = session.order.value;
  for (let at = order.length - 1; at >= 0; at--) {
    const key = order[at]!;
    const kind = session.peek(key)?.kind;
    if (kind === "call") return key;
    if (kind !== "step") continue;
    const row = session.row(key).value;
    const last = row?.kind === "step" ? row.calls.at(-1) : undefined;
    if (last !== undefined) return last;
  }
  return null;
}
