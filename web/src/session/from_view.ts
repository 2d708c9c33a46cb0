/** How the state of a session begins: from a view and the last page of its transcript. Pure. */

import type { MessagePage, View } from "../api/types";
import { startCall } from "./calls";
import { addOlder } from "./history_window";
import { emptyTable } from "./rows";
import type { SessionState } from "./session_state";

export function fromView(view: View, page: MessagePage): SessionState {
  const turnId = view.turn?.turn_id ?? null;
  const { cost, ...usage } = view.usage;
  const state: SessionState = {
    ...emptyTable(),
    sessionId: view.summary.session_id,
    parent: view.summary.parent ?? null,
    seq: view.seq,
    settings: view.settings,
    turn: view.turn && { turnId: view.turn.turn_id, cancelling: view.turn.cancelling, startedAt: null },
    queue: view.queue.filter((message) => message.turn_id !== turnId),
    steers: view.queue.filter((message) => message.turn_id === turnId),
    approvals: view.approvals,
    questions: view.questions,
    context: view.context,
    compacting: null,
    usage,
    cost,
    older: null,
    historyWindow: null,
  };
  addOlder(state, page);
  for (const started of view.calls) startCall(state, started);
  const asking = new Set([...view.approvals, ...view.questions].map((request) => request.call_id));
  for (const [id, call] of state.calls) if (asking.has(id)) state.calls.set(id, { ...call, asking: true });
  return state;
}
