/** What a person has tried in a tour, as its transcript tells. */

import type { Opened } from "../session/session_store";

export interface Tried {
  readonly cancel: boolean;
  readonly answer: boolean;
  readonly steer: boolean;
  readonly kill: boolean;
}

export function tried(opened: Opened, survived: boolean): Tried {
  const found = { cancel: false, answer: false, steer: false, kill: survived };
  const asking = new Set(opened.head.approvals.value.map((each) => each.call_id));
  for (const key of opened.order.value) {
    const row = opened.row(key).value;
    if (row?.kind === "message") found.steer ||= row.mode === "steer";
    else if (row?.kind === "note") found.kill ||= row.note.what === "resumed";
    else if (row?.kind === "step") {
      for (const id of row.calls) {
        const call = opened.call(id).value;
        if (call === undefined) continue;
        // A script that ended with one call less than it began had one cancelled.
        const { nested } = call;
        const cut = nested !== null && nested.ended > nested.completed;
        found.cancel ||= cut || (call.outcome === "cancelled" && call.reason === "interrupt");
        // The command that needs consent is the one that the model calls by itself.
        found.answer ||=
          call.tool === "terminal" && call.phase !== "asked" && call.phase !== "writing" && !asking.has(id);
      }
    }
  }
  return found;
}
