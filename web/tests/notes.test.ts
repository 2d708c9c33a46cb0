import { expect, it } from "vitest";
import type { LoggedEvent } from "../src/api/types";
import { noteOf } from "../src/session/notes";

const fact = (fields: object): LoggedEvent =>
  ({ session_id: "s-1", at: 0, seq: 1, turn_id: "t1", ...fields }) as LoggedEvent;

it.each([
  [
    { type: "turn.resumed", attempt: 2 },
    { what: "resumed", attempt: 2 },
  ],
  [
    { type: "turn.started", warnings: ["a", "b"] },
    { what: "warning", text: "a\nb" },
  ],
  [
    { type: "model.retried", cause: "stalled", message: "m", delay: 1 },
    { what: "retried", cause: "stalled", message: "m", delay: 1 },
  ],
  [
    { type: "model.switched", cause: "quota", from: "a", to: "b" },
    { what: "switched", cause: "quota", from: "a", to: "b" },
  ],
  [
    { type: "context.compacted", summary: "s", up_to: 4, tokens_before: 9, tokens_after: 2 },
    { what: "compacted", summary: "s", upTo: 4, before: 9, after: 2 },
  ],
  [
    { type: "session.changed", by: "me", effort: null, title: "t" },
    { what: "changed", changes: { effort: null } },
  ],
])("%o makes a line", (fields, note) => {
  expect(noteOf(fact(fields))).toEqual(note);
});

it.each([
  { type: "turn.started", message_ids: [] },
  { type: "turn.started", warnings: [] },
  { type: "session.changed", by: "me", title: "another", pinned: true },
  { type: "step.replied", text: "x" },
  { type: "new.thing" },
])("%o makes none", (fields) => {
  expect(noteOf(fact(fields))).toBeNull();
});
