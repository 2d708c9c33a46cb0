/** Which facts make a quiet line, and what it says; the same for the log and as it happens. Pure. */

import type { LoggedEvent, Settings } from "../api/types";
import type { Note } from "./rows";

/** Settings whose change is worth a line. */
const TOLD = ["model", "workspace", "personality", "effort", "approvals", "read_only", "place", "profile"] as const;

/** Null if this fact is none that makes a line. */
export function noteOf(event: LoggedEvent): Note | null {
  switch (event.type) {
    case "context.compacted": {
      const { summary, up_to: upTo, tokens_before: before, tokens_after: after } = event;
      return { what: "compacted", summary, upTo, before, after };
    }
    case "turn.resumed":
      return { what: "resumed", attempt: event.attempt };
    case "turn.started":
      return event.warnings?.length ? { what: "warning", text: event.warnings.join("\n") } : null;
    case "model.retried": {
      const { cause, message, delay } = event;
      return { what: "retried", cause, message, delay };
    }
    case "model.switched":
      return { what: "switched", cause: event.cause, from: event.from, to: event.to };
    case "session.changed": {
      const changes = changesOf(event);
      return Object.keys(changes).length > 0 ? { what: "changed", changes } : null;
    }
    default:
      return null;
  }
}

function changesOf(event: Partial<Settings>): Partial<Settings> {
  const changes: Partial<Settings> = {};
  for (const name of TOLD) if (name in event) Object.assign(changes, { [name]: event[name] });
  return changes;
}
