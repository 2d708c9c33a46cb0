import { describe, expect, it } from "vitest";
import type { LoggedEvent, MessagePage } from "../src/api/types";
import { fromView } from "../src/session/from_view";
import {
  addNewer,
  addOlder,
  closeWindow,
  covers,
  limitRows,
  openWindow,
  rowAt,
  shownPart,
} from "../src/session/history_window";
import { apply } from "../src/session/reducer";
import type { SessionState } from "../src/session/session_state";
import { CONTEXT, emptyView, plain, Story, USAGE } from "./event_log";

const TURNS = 120;
const LIMIT = 10;
const BOUNDS = { most: 80, keep: 40, end: 10 };

/** Each turn: a message, a step with a call, its end, a second step; now and then a call of one's own. */
function longStory(turns: number): Story {
  const story = new Story();
  for (let turn = 1; turn <= turns; turn++) tellTurn(story, turn);
  return story;
}

function tellTurn(story: Story, turn: number): void {
  const turn_id = `t${turn}`;
  const said = { message_id: `m${turn}`, turn_id };
  const rest = { usage: USAGE, cost: 0, context: CONTEXT, stop_reason: "stop" };
  const own = { call_id: `own${turn}`, turn_id: null, tool: "terminal" };
  const end = { outcome: "completed" as const, reason: null, started: true, result: [], duration: 0.1 };
  story.fact({ type: "message.accepted", ...said, mode: "queue", text: `say ${turn}`, workspace: "/project" });
  story.fact({ type: "message.delivered", ...said });
  if (turn % 5 === 0) {
    story.fact({ type: "call.started", ...own, step_id: null, by: "me", arguments: "{}", preview: "" });
  }
  const calls = [{ call_id: `c${turn}`, tool: "terminal", arguments: "{}" }];
  story.fact({ type: "step.replied", turn_id, step_id: `a${turn}`, text: "I look.", calls, ...rest });
  story.fact({ type: "call.finished", call_id: `c${turn}`, turn_id, tool: "terminal", ...end });
  story.fact({ type: "step.replied", turn_id, step_id: `b${turn}`, text: "Done.", ...rest });
  // It ends when other rows have been told meanwhile.
  if (turn % 5 === 0) story.fact({ type: "call.finished", ...own, ...end });
  story.fact({ type: "turn.finished", turn_id, outcome: "completed", usage: USAGE, cost: 0 });
}

/** The host's transcript of such a story. */
class Host {
  readonly rows: MessagePage["rows"][number][] = [];
  private readonly accepted = new Map<string, LoggedEvent>();

  constructor(readonly story: Story) {
    for (const event of story.events) this.note(event as LoggedEvent);
  }

  note(event: LoggedEvent): void {
    if (event.type === "message.accepted") this.accepted.set(event.message_id, event);
    else if (event.type === "message.delivered") {
      const { seq, turn_id } = event;
      this.rows.push({ seq, event: { ...this.accepted.get(event.message_id)!, seq, turn_id } as LoggedEvent });
    } else if (["step.replied", "call.started", "call.finished"].includes(event.type)) {
      this.rows.push({ seq: event.seq, event });
    }
  }

  before(seq: number): MessagePage {
    const rows = this.rows.filter((row) => row.seq < seq).slice(-LIMIT);
    return { rows, next: rows.length === LIMIT ? rows[0]!.seq : null, seq: this.story.seq };
  }

  after(seq: number): MessagePage {
    const rows = this.rows.filter((row) => row.seq > seq).slice(0, LIMIT);
    return { rows, next: rows.length === LIMIT ? rows.at(-1)!.seq : null, seq: this.story.seq };
  }

  open(): SessionState {
    return fromView({ ...emptyView(), seq: this.story.seq }, this.before(Number.POSITIVE_INFINITY));
  }

  /** What the reader does: up and down from the place, until all is there. */
  readOn(state: SessionState): void {
    while (state.historyWindow !== null) addNewer(state, this.after(state.historyWindow.newer));
    while (state.older !== null) addOlder(state, this.before(state.older));
  }

  goTo(state: SessionState, seq: number): void {
    openWindow(state, seq, this.before(seq + 1), this.after(seq));
  }
}

function whole(host: Host): SessionState {
  const state = host.open();
  host.readOn(state);
  return state;
}

/** Totals are the events' to tell, and a view knows them by itself. */
function shownState(state: SessionState): unknown {
  const { usage: _usage, cost: _cost, context: _context, ...rest } = plain(state) as Record<string, unknown>;
  return rest;
}

const host = new Host(longStory(TURNS));
const seqOf = (key: string): number => whole(host).rows.get(key)!.seq;

describe("a stretch", () => {
  it("is what is read, and the end is what happens", () => {
    const state = host.open();
    const { order } = state;
    host.goTo(state, seqOf("a30"));
    expect(shownPart(state).order).toContain("a30");
    expect(shownPart(state).order).not.toContain(order.at(-1));
    expect(rowAt(state, seqOf("a30"))).toBe("a30");
    const before = state.historyWindow!.order;
    tellTurn(host.story, TURNS + 1);
    for (const event of host.story.events.slice(-7)) apply(state, event);
    expect(state.order).toEqual([...order, `m${TURNS + 1}`, `a${TURNS + 1}`, `b${TURNS + 1}`]);
    expect(state.historyWindow!.order).toBe(before);
  });

  it.each(["m1", "a2", "b37", "a60", "own60", "m115", "b118", "a120"])("at %s grows until it meets the end", (key) => {
    const own = new Host(longStory(TURNS));
    const state = own.open();
    own.goTo(state, seqOf(key));
    expect(rowAt(state, seqOf(key))).toBe(key);
    own.readOn(state);
    expect(shownState(state)).toEqual(shownState(whole(own)));
  });

  it("meets an end that went on meanwhile", () => {
    const own = new Host(longStory(40));
    const state = own.open();
    own.goTo(state, seqOf("a10"));
    addNewer(state, own.after(state.historyWindow!.newer));
    for (let turn = 41; turn < 60; turn++) {
      const from = own.story.events.length;
      tellTurn(own.story, turn);
      for (const event of own.story.events.slice(from) as LoggedEvent[]) {
        own.note(event);
        apply(state, event);
      }
      limitRows(state, "a10", BOUNDS);
    }
    expect(state.order.length).toBeLessThanOrEqual(BOUNDS.end * 2);
    own.readOn(state);
    expect(shownState(state)).toEqual(shownState(whole(own)));
  });

  it("finds the row of what happened in a call", () => {
    const state = host.open();
    host.goTo(state, seqOf("a30") + 1);
    expect(rowAt(state, seqOf("a30") + 1)).toBe("a30");
  });

  it("says nothing of places that are not in it", () => {
    const state = host.open();
    host.goTo(state, seqOf("a30"));
    expect(covers(state.historyWindow!, seqOf("a90"))).toBe(false);
    expect([rowAt(state, seqOf("a90")), rowAt(state, 1)]).toEqual([null, null]);
  });

  it("that is closed leaves nothing behind", () => {
    const state = host.open();
    const [rows, calls] = [state.rows.size, state.calls.size];
    for (const key of ["a10", "own50", "b77", "m3"]) host.goTo(state, seqOf(key));
    closeWindow(state);
    expect([state.rows.size, state.calls.size]).toEqual([rows, calls]);
    host.readOn(state);
    expect(shownState(state)).toEqual(shownState(whole(host)));
  });

  it("loses a turn that is undone, and so does the end", () => {
    const own = new Host(longStory(TURNS));
    const state = own.open();
    own.goTo(state, seqOf("a30"));
    for (const turn_id of ["t30", `t${TURNS}`]) {
      own.story.fact({ type: "turn.undone", turn_id, by: "me" });
      apply(state, own.story.events.at(-1)!);
    }
    expect([...state.rows.keys()].filter((key) => /^[mab](30|120)$/.test(key))).toEqual([]);
    expect(shownPart(state).order).toContain("a31");
  });

  it("takes what happens late to a call in it", () => {
    const own = new Host(longStory(TURNS));
    const state = own.open();
    own.goTo(state, seqOf("a30"));
    own.story.fact({ type: "call.settled", call_id: "c30", duration: 1 });
    apply(state, own.story.events.at(-1)!);
    expect(state.calls.get("c30")).toMatchObject({ settled: true, outcome: "completed" });
  });
});

describe("memory", () => {
  const held = (state: SessionState): number => state.order.length + (state.historyWindow?.order.length ?? 0);

  it("is bounded for whoever reads up to the beginning, and down again", () => {
    const state = host.open();
    const most: number[] = [];
    while (shownPart(state).older !== null) {
      addOlder(state, host.before(shownPart(state).older!));
      limitRows(state, shownPart(state).order[3]!, BOUNDS);
      most.push(held(state), state.rows.size, state.calls.size);
    }
    expect(shownPart(state).order[0]).toBe("m1");
    while (state.historyWindow !== null) {
      addNewer(state, host.after(state.historyWindow.newer));
      limitRows(state, shownPart(state).order.at(-8)!, BOUNDS);
      most.push(held(state), state.rows.size, state.calls.size);
    }
    expect(shownPart(state).order.at(-1)).toBe(whole(host).order.at(-1));
    expect(Math.max(...most)).toBeLessThanOrEqual(BOUNDS.most + LIMIT + BOUNDS.end * 2);
    host.readOn(state);
    expect(shownState(state)).toEqual(shownState(whole(host)));
  });

  it("is bounded at the end, and for whoever reads while it goes on", () => {
    for (const reader of [null, "a1"]) {
      const own = new Host(longStory(2));
      const state = own.open();
      const most: number[] = [];
      for (let turn = 3; turn < 200; turn++) {
        const from = own.story.events.length;
        tellTurn(own.story, turn);
        for (const event of own.story.events.slice(from) as LoggedEvent[]) {
          own.note(event);
          apply(state, event);
        }
        limitRows(state, reader, BOUNDS);
        most.push(held(state), state.calls.size);
      }
      const bounded = reader === null ? BOUNDS.keep + BOUNDS.end : BOUNDS.most + BOUNDS.end * 2;
      expect(Math.max(...most)).toBeLessThanOrEqual(bounded);
      if (reader !== null) expect(shownPart(state).order).toContain(reader);
      own.readOn(state);
      expect(shownState(state)).toEqual(shownState(whole(own)));
    }
  });
});
