/** One story with everything in it that happens to a session. */

import { CONTEXT, Story, USAGE } from "./event_log";

const said = { key: null, by: "me", workspace: "/project" };
const done = { usage: USAGE, cost: 0.5 };

export function wholeStory(): Story {
  const story = new Story();
  story.fact({ type: "message.accepted", message_id: "m1", turn_id: "t1", mode: "queue", text: "begin", ...said });
  story.fact({ type: "message.delivered", message_id: "m1", turn_id: "t1" });
  story.fact({ type: "turn.started", turn_id: "t1", message_ids: ["m1"], warnings: ["something is amiss"] });
  firstStep(story);
  secondStep(story);
  story.fact({ type: "turn.finished", turn_id: "t1", outcome: "completed", ...done });
  failedTurn(story);
  return story;
}

function firstStep(story: Story): void {
  story.fact({ type: "step.started", turn_id: "t1", step_id: "p1", model: "scripted:one" });
  story.live({ type: "reasoning.delta", step_id: "p1", text: "hm" }).text("p1", "wro", "ng");
  story.fact({ type: "model.retried", turn_id: "t1", step_id: "p1", cause: "stalled", message: "m", delay: 1 });
  story.live({ type: "step.reset", step_id: "p1" }).text("p1", "I ", "will ");
  story.live({ type: "arguments.delta", step_id: "p1", call_id: "c1", tool: "terminal", text: '{"comm' });
  story.live({ type: "arguments.delta", step_id: "p1", call_id: "c1", tool: "terminal", text: 'and":"ls"}' });
  story.live({ type: "arguments.delta", step_id: "p1", call_id: "c9", tool: "terminal", text: "{" });
  const calls = [
    { call_id: "c1", tool: "terminal", arguments: '{"command":"ls"}' },
    { call_id: "c2", tool: "terminal", arguments: "{}" },
  ];
  const rest = { context: CONTEXT, stop_reason: "calls", ...done };
  story.fact({ type: "step.replied", turn_id: "t1", step_id: "p1", text: "I will look.", calls, ...rest });
  const start = { turn_id: "t1", step_id: "p1", by: "model", tool: "terminal", arguments: "{}", preview: "ls" };
  story.fact({ type: "call.started", call_id: "c1", ...start });
  story.live({ type: "call.output", call_id: "c1", stream: "stdout", text: "a\n" });
  story.live({ type: "call.progress", call_id: "c1", done: 1, total: 2, note: "half" });
  story.live({ type: "call.progress", call_id: "n1", parent: "c1", nested: { tool: "read_file", preview: "x" } });
  story.fact({
    type: "approval.asked",
    turn_id: "t1",
    approval_id: "a1",
    call_id: "c2",
    what: "w",
    why: "y",
    risk: "low",
    expires: null,
  });
  story.fact({ type: "message.accepted", message_id: "m2", turn_id: "t1", mode: "steer", text: "rather", ...said });
  story.fact({ type: "message.accepted", message_id: "m3", turn_id: "t2", mode: "queue", text: "then", ...said });
  story.fact({ type: "message.accepted", message_id: "m4", turn_id: "t3", mode: "queue", text: "later", ...said });
  story.fact({ type: "message.changed", message_id: "m4", text: "sooner", before: "m3" });
  story.fact({ type: "approval.expired", turn_id: "t1", approval_id: "a1", call_id: "c2", cause: "steer" });
  const end = { turn_id: "t1", tool: "terminal", reason: "steer", result: [], duration: 2 };
  story.fact({ type: "call.finished", call_id: "c1", outcome: "unknown", started: true, left_over: ["c1"], ...end });
  story.fact({ type: "call.finished", call_id: "c2", outcome: "cancelled", started: false, ...end });
  story.fact({ type: "message.delivered", message_id: "m2", turn_id: "t1" });
}

function secondStep(story: Story): void {
  story.fact({ type: "step.started", turn_id: "t1", step_id: "p2", model: "scripted:one" }).text("p2", "Do", "ne");
  story.fact({ type: "session.changed", by: "me", effort: "high" });
  const own = { turn_id: null, call_id: "k1", tool: "terminal" };
  story.fact({ type: "call.started", ...own, step_id: null, by: "me", arguments: "{}", preview: "pwd" });
  story.text("p2", ".");
  const end = { outcome: "completed" as const, reason: null, started: true, result: [], duration: 1 };
  story.fact({ type: "call.finished", ...own, ...end });
  const rest = { context: CONTEXT, stop_reason: "stop", ...done };
  story.fact({ type: "step.replied", turn_id: "t1", step_id: "p2", text: "Done.", ...rest });
}

function failedTurn(story: Story): void {
  story.fact({ type: "call.settled", call_id: "c1", duration: 9 });
  story.fact({ type: "message.delivered", message_id: "m4", turn_id: "t3" });
  story.fact({ type: "turn.started", turn_id: "t3", message_ids: ["m4"] });
  story.fact({ type: "step.started", turn_id: "t3", step_id: "p3", model: "scripted:one" }).text("p3", "lost");
  story.fact({ type: "step.abandoned", turn_id: "t3", step_id: "p3", cause: "error" });
  const error = { kind: "auth" as const, message: "refused", hint: "set a key" };
  story.fact({ type: "turn.finished", turn_id: "t3", outcome: "failed", error, usage: USAGE, cost: 0 });
  story.fact({ type: "message.withdrawn", message_id: "m3" });
}
