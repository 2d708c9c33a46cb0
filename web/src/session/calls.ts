/** What becomes of a call as its events come. Pure: it changes the table and nothing else. */

import type {
  CallFinished,
  CallOutput,
  CallProgress,
  CallStarted,
  Outcome,
  RunningCall,
  RunningNested,
} from "../api/types";
import { notePlan } from "./plan";
import type { Call, Nested, NestedTool, Table } from "./rows";
import { putRow } from "./rows";

/** More than a screen shows at once; the whole is in the result. */
const MOST_OUTPUT = 20_000;
/** Nested calls that are listed one by one. */
const MOST_NESTED = 200;

const NO_NESTED: Nested = { began: 0, ended: 0, completed: 0, listed: [], bunched: false, tools: [], blob: null };

function fresh(callId: string, tool: string): Call {
  return {
    callId,
    tool,
    arguments: "",
    argumentsBlob: null,
    preview: "",
    phase: "asked",
    asking: false,
    startedAt: null,
    finishedAt: null,
    finishedSeq: null,
    output: "",
    done: null,
    total: null,
    note: "",
    nested: null,
    outcome: null,
    reason: null,
    started: false,
    result: [],
    duration: null,
    exitCode: null,
    settled: false,
  };
}

function putCall(table: Table, callId: string, tool: string, changes: Partial<Call>): void {
  const call = table.calls.get(callId) ?? fresh(callId, tool);
  table.calls.set(callId, { ...call, ...changes });
  table.touched.calls.add(callId);
}

function change(table: Table, callId: string, changes: (call: Call) => Partial<Call>): void {
  const call = table.calls.get(callId);
  if (call !== undefined) putCall(table, callId, call.tool, changes(call));
}

/** The reply is there and asks for this call; what is known of it already stays. */
export function requestCall(table: Table, callId: string, tool: string, args: string): void {
  const call = table.calls.get(callId);
  const phase = call === undefined || call.phase === "writing" ? "asked" : call.phase;
  putCall(table, callId, tool, { tool, arguments: args, argumentsBlob: null, phase });
}

export function writeArguments(table: Table, callId: string, tool: string, text: string): void {
  const call = table.calls.get(callId);
  putCall(table, callId, tool, { phase: "writing", arguments: (call?.arguments ?? "") + text });
}

export function startCall(table: Table, event: CallStarted): void {
  const call = table.calls.get(event.call_id);
  // A call's own event has only the beginning of long arguments; the reply has them whole.
  const written = call?.arguments ? {} : { arguments: event.arguments, argumentsBlob: event.arguments_blob ?? null };
  // Its end may be known before: it stands in a newer page.
  const phase = call?.phase === "finished" ? {} : { phase: "started" as const, started: true, asking: false };
  putCall(table, event.call_id, event.tool, { ...written, ...phase, preview: event.preview, startedAt: event.at });
  if (event.step_id === null) {
    putRow(table, { kind: "call", key: event.call_id, seq: event.seq, turnId: event.turn_id, at: event.at });
  }
}

export function finishCall(table: Table, event: CallFinished): void {
  notePlan(table, event);
  const call = table.calls.get(event.call_id);
  putCall(table, event.call_id, event.tool, {
    tool: event.tool,
    phase: "finished",
    asking: false,
    outcome: event.outcome,
    reason: event.reason,
    started: event.started,
    startedAt: call?.startedAt ?? event.at - event.duration,
    finishedAt: event.at,
    finishedSeq: event.seq,
    duration: event.duration,
    result: event.result,
    exitCode: event.outcome === "completed" ? exitCodeOf(event.result) : null,
    output: "",
    done: null,
    total: null,
    note: "",
    nested: event.nested ? whole(event.nested, call?.nested ?? NO_NESTED) : null,
  });
}

/** The code that a command ended with, if that is not 0. */
export function exitCodeOf(result: CallFinished["result"]): number | null {
  for (const part of result) {
    if (part.type !== "json" || typeof part.value !== "object" || part.value === null) continue;
    const { exit_code: code } = part.value as { exit_code?: unknown };
    if (typeof code === "number" && code !== 0) return code;
  }
  return null;
}

export function settleCall(table: Table, callId: string): void {
  change(table, callId, () => ({ settled: true }));
}

export function setAsking(table: Table, callId: string, asking: boolean): void {
  change(table, callId, () => ({ asking }));
}

export function addOutput(table: Table, event: CallOutput): void {
  // What a nested call prints is its script's to read; the screen shows the script's own words.
  if (event.parent) return;
  change(table, event.call_id, (call) => (call.phase === "started" ? { output: tail(call.output + event.text) } : {}));
}

/** At most the bound, cut at a line where there is one, and only now and then. */
function tail(text: string): string {
  if (text.length <= MOST_OUTPUT * 2) return text;
  const cut = text.length - MOST_OUTPUT;
  const line = text.indexOf("\n", cut);
  return text.slice(line < 0 || line - cut > 1_000 ? cut : line + 1);
}

export function addProgress(table: Table, event: CallProgress): void {
  const { nested, parent } = event;
  if (nested && parent) {
    change(table, parent, (call) => ({ nested: addNested(call.nested ?? NO_NESTED, event) }));
  } else if (!parent) {
    change(table, event.call_id, () => ({
      done: event.done ?? null,
      total: event.total ?? null,
      note: event.note ?? "",
    }));
  }
}

/** What began and ended is in the blob; what each worked on only those know who saw it begin. */
function whole(summary: NonNullable<CallFinished["nested"]>, before: Nested): Nested {
  const { calls, completed, blob } = summary;
  return { ...NO_NESTED, began: calls, ended: calls, completed, blob, listed: before.bunched ? [] : before.listed };
}

function addNested(nested: Nested, event: CallProgress): Nested {
  const progress = event.nested!;
  const count = progress.count ?? 1;
  const outcome = progress.outcome ?? null;
  const tools = count === 0 ? nested.tools : addToTool(nested.tools, progress.tool, outcome, count, event.at);
  // A bunch names the container, and none of those that are in it.
  const isBunch = count > 1 || event.call_id === event.parent;
  const sums = {
    ...nested,
    began: nested.began + (outcome === null ? count : 0),
    ended: nested.ended + (outcome === null ? 0 : count),
    completed: nested.completed + (outcome === "completed" ? count : 0),
    tools,
  };
  if (isBunch) return crowded(sums);
  if (outcome === null) return listed(sums, event);
  const { call_id: callId } = event;
  const duration = progress.duration ?? 0;
  const list = nested.listed.map((item) =>
    item.callId === callId ? { ...item, outcome, duration, exitCode: progress.exit_code ?? null } : item,
  );
  return nested.bunched ? crowded({ ...sums, listed: list }) : { ...sums, listed: list };
}

/** Some are only counted now: of those that were told by themselves the ones that run stay apart. */
function crowded(nested: Nested): Nested {
  const running = nested.listed.filter((item) => item.outcome === null);
  return { ...nested, bunched: true, listed: running.length === nested.listed.length ? nested.listed : running };
}

/** One more that is told by itself; its end will be, too. */
function listed(nested: Nested, event: CallProgress): Nested {
  const { tool, preview = "", duration } = event.nested!;
  if (nested.listed.some((item) => item.callId === event.call_id)) return nested;
  if (nested.listed.length >= MOST_NESTED) return crowded(nested);
  // It has run for a while, if it was one of many that were only counted.
  const at = event.at - (duration ?? 0);
  const one = { callId: event.call_id, tool, preview, at, outcome: null, duration: null };
  return { ...nested, listed: [...nested.listed, one] };
}

function addToTool(
  tools: readonly NestedTool[],
  tool: string,
  outcome: Outcome | null,
  count: number,
  at: number,
): readonly NestedTool[] {
  const sum = tools.find((candidate) => candidate.tool === tool) ?? {
    tool,
    began: 0,
    ended: {},
    firstAt: at,
    lastAt: at,
  };
  const ended = outcome === null ? sum.ended : { ...sum.ended, [outcome]: (sum.ended[outcome] ?? 0) + count };
  const next = { ...sum, began: sum.began + (outcome === null ? count : 0), ended, lastAt: at };
  return tools.includes(sum) ? tools.map((entry) => (entry === sum ? next : entry)) : [...tools, next];
}

/** A call under way, as a late reader is shown it. */
export function showRunning(table: Table, running: RunningCall): void {
  change(table, running.call_id, (call) =>
    call.phase === "finished"
      ? {}
      : {
          output: running.output ?? "",
          done: running.done ?? null,
          total: running.total ?? null,
          note: running.note ?? "",
          nested: running.nested ? nestedSoFar(running.nested, call.startedAt ?? 0) : call.nested,
        },
  );
}

/** While they are few each is told; then how many there are, and those that are named among them. */
function nestedSoFar(running: RunningNested, since: number): Nested {
  const { began = 0, ended = 0, completed = 0, calls = [], tools = [] } = running;
  const listed = calls.map((nestedCall) => ({
    callId: nestedCall.call_id,
    tool: nestedCall.tool,
    preview: nestedCall.preview ?? "",
    at: since + nestedCall.start,
    outcome: nestedCall.outcome ?? null,
    duration: nestedCall.duration ?? null,
    exitCode: nestedCall.exit_code ?? null,
  }));
  const sums = tools.map(({ first, last, ...sum }) => ({ ...sum, firstAt: since + first, lastAt: since + last }));
  return { ...NO_NESTED, began, ended, completed, listed, tools: sums, bunched: listed.length < began };
}
