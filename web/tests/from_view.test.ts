import { expect, it } from "vitest";
import type { CallStarted, LoggedEvent, MessagePage, SessionEvent, View } from "../src/api/types";
import { fromView } from "../src/session/from_view";
import { addOlder } from "../src/session/history_window";
import { noteOf } from "../src/session/notes";
import { apply } from "../src/session/reducer";
import type { SessionState } from "../src/session/session_state";
import { emptyState, emptyView, plain, snapshotAfter } from "./event_log";
import { wholeStory } from "./story";

const { events } = wholeStory();
const whole = emptyState();
for (const event of events) apply(whole, event);

/** The rows that a host lists of these facts. */
function transcript(facts: readonly LoggedEvent[]): MessagePage["rows"] {
  const rows: MessagePage["rows"][number][] = [];
  const accepted = new Map<string, LoggedEvent>();
  for (const fact of facts) {
    if (fact.type === "message.accepted") accepted.set(fact.message_id, fact);
    else if (fact.type === "message.changed") {
      const { text } = fact;
      accepted.set(fact.message_id, { ...accepted.get(fact.message_id)!, text } as LoggedEvent);
    } else if (fact.type === "message.delivered") {
      const { seq, at, turn_id } = fact;
      rows.push({ seq, event: { ...accepted.get(fact.message_id)!, seq, at, turn_id } as LoggedEvent });
    } else if (fact.type === "step.replied" || fact.type === "call.finished") rows.push({ seq: fact.seq, event: fact });
    else if (fact.type === "turn.finished" && fact.outcome !== "completed") rows.push({ seq: fact.seq, event: fact });
    else if (fact.type === "call.started" && fact.step_id === null) rows.push({ seq: fact.seq, event: fact });
    else if (noteOf(fact) !== null) rows.push({ seq: fact.seq, event: fact });
  }
  return rows;
}

function opened(at: number, limit: number): SessionState {
  const before = events.slice(0, at);
  const facts = before.filter((event): event is LoggedEvent => "seq" in event);
  const then = emptyState();
  for (const fact of facts) apply(then, fact);
  const running = facts.filter(
    (fact): fact is CallStarted => fact.type === "call.started" && then.calls.get(fact.call_id)?.phase === "started",
  );
  const view: View = {
    ...emptyView(),
    seq: then.seq,
    settings: then.settings,
    turn: then.turn && { turn_id: then.turn.turnId, cancelling: then.turn.cancelling },
    queue: [...then.steers, ...then.queue],
    approvals: [...then.approvals],
    calls: running,
    context: then.context,
    usage: { ...then.usage, cost: then.cost },
  };
  const rows = transcript(facts);
  const page = rows.slice(-limit);
  const state = fromView(view, { rows: page, next: rows.length > limit ? page[0]!.seq : null, seq: view.seq });
  while (state.older !== null) {
    const older = rows.filter((row) => row.seq < state.older!);
    const next = older.slice(-limit);
    addOlder(state, { rows: next, next: older.length > limit ? next[0]!.seq : null, seq: view.seq });
  }
  const snapshot = snapshotAfter(before);
  if (snapshot !== null) apply(state, snapshot);
  return state;
}

/** A view tells no times of what began before it; all else must be alike. */
function essence(state: SessionState): unknown {
  const { rows, calls, turn, ...rest } = plain(state) as Record<string, unknown>;
  const timed = rows as { at: number; seq: number }[];
  return {
    ...rest,
    turn: turn === null ? null : (turn as { turnId: string }).turnId,
    rows: timed.map(({ at: _at, seq: _seq, ...row }) => row),
    calls: (calls as [string, object][]).map(([id, call]) => [id, { ...call, startedAt: 0, preview: "", settled: 0 }]),
  };
}

const cases = events.flatMap((_, at) => [1, 2, 50].map((limit) => [at, limit] as const));

it.each(cases)("opened after event %i with pages of %i rows it comes to the same", (at, limit) => {
  const state = opened(at, limit);
  for (const event of events.slice(at) as SessionEvent[]) expect(apply(state, event)).not.toBe("gap");
  expect(essence(state)).toEqual(essence(whole));
});

it("leaves to the events what came after the view", () => {
  const facts = events.filter((event): event is LoggedEvent => "seq" in event);
  const view = { ...emptyView(), seq: 3, turn: { turn_id: "t1", cancelling: false } };
  const state = fromView(view, { rows: transcript(facts), next: null, seq: facts.length });
  expect(state.order).toEqual(["m1", "note:3"]);
});
