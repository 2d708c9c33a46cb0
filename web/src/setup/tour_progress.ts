/** What a person has tried in a tour, as its transcript tells. */

import type { Call } from "../session/rows";
import type { SessionStore } from "../session/session_store";

export interface TourProgress {
  readonly cancel: boolean;
  readonly answer: boolean;
  readonly steer: boolean;
  readonly kill: boolean;
}

export function tourProgress(session: SessionStore, survived: boolean): TourProgress {
  const progress = { cancel: false, answer: false, steer: false, kill: survived };
  const asking = new Set(session.head.approvals.value.map((approval) => approval.call_id));
  for (const key of session.order.value) {
    const row = session.row(key).value;
    if (row?.kind === "message") progress.steer ||= row.mode === "steer";
    else if (row?.kind === "note") progress.kill ||= row.note.what === "resumed";
    else if (row?.kind === "step") {
      const calls = row.calls.flatMap((id) => session.call(id).value ?? []);
      progress.cancel ||= calls.some(wasCancelled);
      progress.answer ||= calls.some((call) => wasAnswered(call) && !asking.has(call.callId));
    }
  }
  return progress;
}

/** A script that ended with one call less than it began had one cancelled. */
function wasCancelled({ nested, outcome, reason }: Call): boolean {
  const cut = nested !== null && nested.ended > nested.completed;
  return cut || (outcome === "cancelled" && reason === "interrupt");
}

/** The command that needs consent is the one that the model calls by itself. */
function wasAnswered({ tool, phase }: Call): boolean {
  return tool === "terminal" && phase !== "asked" && phase !== "writing";
}
