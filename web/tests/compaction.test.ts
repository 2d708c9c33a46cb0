import { describe, expect, it } from "vitest";
import type { LoggedEvent, MessagePage, SessionEvent } from "../src/api/types";
import { fromView } from "../src/session/from_view";
import { apply, dropUnlogged } from "../src/session/reducer";
import type { Row } from "../src/session/rows";
import type { SessionState } from "../src/session/session_state";
import { lastSummary } from "../src/session/summaries";
import { shortTime, tokens } from "../src/texts/amounts";
import { sentence } from "../src/texts/sentences";
import { CONTEXT, emptyState, emptyView, plain, Story, USAGE } from "./event_log";

const BEFORE = 76_000;
const AFTER = 9_000;
const FULL = { ...CONTEXT, last_prompt_tokens: BEFORE };

function said(story: Story, number: number, text = "Done."): Story {
  const [message_id, turn_id, step_id] = [`m${number}`, `t${number}`, `p${number}`];
  const rest = { mode: "queue", text: `say ${number}`, workspace: "/project" } as const;
  story.fact({ type: "message.accepted", message_id, turn_id, ...rest });
  story.fact({ type: "message.delivered", message_id, turn_id });
  story.fact({ type: "turn.started", turn_id, message_ids: [message_id] });
  story.fact({ type: "step.started", turn_id, step_id, model: "m" }).text(step_id, text);
  const reply = { usage: USAGE, cost: 0, context: FULL, stop_reason: "stop" };
  story.fact({ type: "step.replied", turn_id, step_id, text, ...reply });
  return story.fact({ type: "turn.finished", turn_id, outcome: "completed", usage: USAGE, cost: 0 });
}

const begins = (story: Story): Story =>
  story.live({ type: "context.compacting", turn_id: null, tokens_before: BEFORE });
const ends = (story: Story): Story =>
  story.live({ type: "context.compacting", turn_id: null, tokens_before: BEFORE, over: true });
const compacted = (story: Story, upTo = story.seq, summary = "All of it."): Story =>
  story.fact({
    type: "context.compacted",
    turn_id: null,
    summary,
    up_to: upTo,
    tokens_before: BEFORE,
    tokens_after: AFTER,
  });

function fold(events: readonly SessionEvent[], state = emptyState()): SessionState {
  for (const event of events) apply(state, event);
  return state;
}

const rowsOf = (state: SessionState): Row[] => state.order.map((key) => state.rows.get(key)!);

describe("while it is summed up", () => {
  it("the tokens that it is about are told, until it is over", () => {
    const state = fold(begins(said(new Story(), 1)).events);
    expect(state.compacting).toMatchObject({ before: BEFORE });
    fold(ends(new Story()).events, state);
    expect(state.compacting).toBeNull();
    expect(state.context).toEqual(FULL);
  });

  it("the fact ends it at once, so that its line takes the place of the other", () => {
    const state = fold(compacted(begins(said(new Story(), 1))).events);
    expect(state.compacting).toBeNull();
    expect(state.order.at(-1)).toBe(`note:${state.seq}`);
  });

  it("no row is touched and none comes, so that nothing moves", () => {
    const state = fold(said(new Story(), 1).events);
    const { order } = state;
    state.touched.rows.clear();
    fold(ends(begins(new Story())).events, state);
    expect(state.order).toBe(order);
    expect(state.touched.rows.size).toBe(0);
  });

  it("whoever comes late is told, and so is whoever was too slow", () => {
    const [event] = begins(new Story()).events;
    const state = fold([event!]);
    expect(apply(state, { type: "resync", session_id: "s-1", at: 0 })).toBe("applied");
    expect(state.compacting).toBeNull();
    expect(apply(state, event!)).toBe("applied");
    expect(state.compacting).toEqual({ before: BEFORE, at: event!.at });
  });

  it("a lost connection leaves nothing that may be over when it is back", () => {
    const state = fold(begins(said(new Story(), 1)).events);
    const before = plain(state);
    dropUnlogged(state);
    expect(plain(state)).toEqual({ ...(before as object), compacting: null });
  });
});

describe("when it was summed up", () => {
  it("the meter falls to what is left, and rises with the next reply", () => {
    const story = ends(compacted(begins(said(new Story(), 1))));
    const state = fold(story.events);
    expect(state.context).toEqual({ ...FULL, last_prompt_tokens: AFTER });
    const next = said(new Story(), 2).events.map((event) =>
      "seq" in event ? { ...event, seq: event.seq + state.seq } : event,
    ) as SessionEvent[];
    fold(next, state);
    expect(state.context).toEqual(FULL);
  });

  it("a session whose size nobody knows has none still", () => {
    expect(fold(compacted(new Story()).events).context).toBeNull();
  });

  it("its line stands before a reply that streams, as it does in the log", () => {
    const story = said(new Story(), 1);
    story.fact({ type: "turn.started", turn_id: "t2", message_ids: [] });
    story.fact({ type: "step.started", turn_id: "t2", step_id: "p2", model: "m" }).text("p2", "Half");
    const state = fold(compacted(begins(story)).events);
    expect(state.order.slice(-2)).toEqual([`note:${state.seq}`, "p2"]);
    const rest = { usage: USAGE, cost: 0, context: CONTEXT, stop_reason: "stop" };
    story.fact({ type: "step.replied", turn_id: "t2", step_id: "p2", text: "Half done.", ...rest });
    fold(story.events, state);
    expect(rowsOf(state).map((row) => row.seq)).toEqual([2, 5, 9, 8 + 2]);
  });

  it("it is the same after a reload", () => {
    const story = said(ends(compacted(begins(said(new Story(), 1)), 4)), 2);
    const state = fold(story.events);
    const listed = ["message.delivered", "step.replied", "context.compacted"];
    const facts = story.events.filter((event): event is LoggedEvent => "seq" in event);
    const rows = facts.flatMap((event): MessagePage["rows"] => {
      if (!listed.includes(event.type)) return [];
      if (event.type !== "message.delivered") return [{ seq: event.seq, event }];
      const accepted = facts.find((fact) => fact.type === "message.accepted" && fact.message_id === event.message_id)!;
      return [{ seq: event.seq, event: { ...accepted, seq: event.seq } as LoggedEvent }];
    });
    const anew = fromView({ ...emptyView(), seq: story.seq, context: FULL }, { rows, next: null, seq: story.seq });
    expect(anew.order).toEqual(state.order);
    expect(lastSummary(rowsOf(anew))).toEqual(lastSummary(rowsOf(state)));
    expect([...anew.rows.values()].filter((row) => row.kind === "note")).toEqual(
      [...state.rows.values()].filter((row) => row.kind === "note"),
    );
    expect(anew.context).toEqual(state.context);
  });
});

describe("the summary that stands for the earlier part", () => {
  const story = said(said(new Story(), 1), 2);
  const [first, second] = [5, 8]; // the first reply, and the second message
  compacted(compacted(story, first, "Old."), first, "New.");
  const rows = rowsOf(fold(story.events));

  it("is the newest one", () => {
    expect(lastSummary(rows)).toMatchObject({ summary: "New.", before: BEFORE, after: AFTER });
    expect(lastSummary(rows.slice(0, -1))).toMatchObject({ summary: "Old." });
    expect(lastSummary(rows.slice(0, -2))).toBeNull();
    expect(lastSummary([])).toBeNull();
  });

  it("says when that begins what it does not stand for", () => {
    const keptRow = rows.find((row) => row.seq === second)!;
    expect(lastSummary(rows)?.since).toBe(keptRow.at);
  });

  it("says when it was made if it stands for everything", () => {
    const all = rowsOf(fold(compacted(said(new Story(), 1)).events));
    expect(lastSummary(all)?.since).toBe(all.at(-1)!.at);
  });

  it("does not say what is not here", () => {
    expect(lastSummary(rows.slice(2))).toMatchObject({ summary: "New.", since: null });
  });
});

it.each([
  [999, "999"],
  [9_000, "9k"],
  [9_140, "9.1k"],
  [9_960, "10k"],
  [76_000, "76k"],
])("%i tokens are told as %s", (count, text) => {
  expect(tokens(count)).toBe(text);
});

it("tells the day of what was not today", () => {
  const noon = new Date(2026, 4, 5, 12, 0).getTime();
  expect(shortTime(noon / 1_000, noon)).not.toContain("2026");
  expect(shortTime(noon / 1_000, noon + 86_400_000)).toContain("2026");
});

it.each([
  ["there is nothing to sum up", "There is nothing to sum up."],
  ["one:model answered 401", "one:model answered 401."],
  ["read_file failed!", "read_file failed!"],
  ["", ""],
])("%o is said as %o", (words, text) => {
  expect(sentence(words)).toBe(text);
});
