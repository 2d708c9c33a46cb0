/**
 * The rows of a transcript. A row is never changed, only replaced by another with the same key,
 * so whoever shows it can tell by identity whether it must be shown anew.
 */

import type {
  Attachment,
  MessageMode,
  Outcome,
  PlanItem,
  ResultPart,
  Settings,
  TurnError,
  TurnOutcome,
  Usage,
} from "../api/types";

interface RowOf<K extends string> {
  readonly kind: K;
  readonly key: string;
  /** Of the fact that the row was made from; older pages are asked for by it. */
  readonly seq: number;
  readonly turnId: string | null;
  readonly at: number;
}

export interface MessageRow extends RowOf<"message"> {
  readonly text: string;
  readonly mode: MessageMode;
  readonly attachments: readonly Attachment[];
  /** The turns that replaced each other, oldest first, its own among them; empty if none did. */
  readonly variants: readonly string[];
}

export interface StepRow extends RowOf<"step"> {
  /** Whether the reply still streams. */
  readonly live: boolean;
  /** When the reply was whole, so that its calls could begin; null while it streams. */
  readonly repliedAt: number | null;
  readonly text: string;
  readonly reasoning: string;
  /** In the order in which the reply asks for them; what they are is in the table of calls. */
  readonly calls: readonly string[];
  readonly cut: boolean;
  readonly usage: Usage | null;
  readonly cost: number | null;
}

/** A call that a person ran: it belongs to no step. */
export interface CallRow extends RowOf<"call"> {}

/** The summary stands for the facts up to `upTo`. */
export interface Compacted {
  readonly what: "compacted";
  readonly summary: string;
  readonly upTo: number;
  readonly before: number;
  readonly after: number;
}

export type Note =
  | { readonly what: "retried"; readonly cause: string; readonly message: string; readonly delay: number }
  | { readonly what: "switched"; readonly cause: string; readonly from: string; readonly to: string }
  | Compacted
  | { readonly what: "resumed"; readonly attempt: number }
  | { readonly what: "warning"; readonly text: string }
  | { readonly what: "changed"; readonly changes: Partial<Settings> };

export interface NoteRow extends RowOf<"note"> {
  readonly note: Note;
}

export interface EndRow extends RowOf<"end"> {
  readonly outcome: TurnOutcome;
  readonly reason: string | null;
  readonly started: boolean;
  readonly leftOver: number;
  readonly error: TurnError | null;
}

export type Row = MessageRow | StepRow | CallRow | NoteRow | EndRow;

export interface NestedItem {
  readonly callId: string;
  readonly tool: string;
  readonly preview: string;
  readonly at: number;
  /** Null while it runs. */
  readonly outcome: Outcome | null;
  readonly duration: number | null;
  /** Of a command that ended with another code than 0. */
  readonly exitCode?: number | null;
}

/** What the nested calls of one tool add up to, however they were told. */
export interface NestedTool {
  readonly tool: string;
  readonly began: number;
  readonly ended: Readonly<Partial<Record<Outcome, number>>>;
  /** When the first began, and when the last was told of. */
  readonly firstAt: number;
  readonly lastAt: number;
}

export interface Nested {
  readonly began: number;
  readonly ended: number;
  readonly completed: number;
  /** One by one, as long as each was told by itself; of a crowd those that were and that run. */
  readonly listed: readonly NestedItem[];
  /** Whether some came in bunches, which name no single one: then only the sums are right. */
  readonly bunched: boolean;
  readonly tools: readonly NestedTool[];
  /** Names all of them, once the container has ended. */
  readonly blob: string | null;
}

/** writing: the model writes its arguments. asked: it waits for its order, a slot or a person. */
export type CallPhase = "writing" | "asked" | "started" | "finished";

export interface Call {
  readonly callId: string;
  readonly tool: string;
  readonly arguments: string;
  /** Names the whole of arguments of which only the beginning is here. */
  readonly argumentsBlob: string | null;
  readonly preview: string;
  readonly phase: CallPhase;
  /** Whether a person is asked about it right now. */
  readonly asking: boolean;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** Of the fact that says how it ended. */
  readonly finishedSeq: number | null;
  /** The end of what it printed so far; nothing once the result is there. */
  readonly output: string;
  readonly done: number | null;
  readonly total: number | null;
  readonly note: string;
  readonly nested: Nested | null;
  readonly outcome: Outcome | null;
  readonly reason: string | null;
  /** False if it ended before it could act. */
  readonly started: boolean;
  readonly result: readonly ResultPart[];
  readonly duration: number | null;
  /** Of a command that ended with another code than 0: it is done, but not well. */
  readonly exitCode: number | null;
  /** It ended as unknown and has come to its end since. */
  readonly settled: boolean;
}

/** What a session has to do, as its last call of `todo` wrote it. */
export interface Plan {
  readonly items: readonly PlanItem[];
  /** The fact that it comes from; a newer one replaces it. */
  readonly seq: number;
  /** Null: a person ran the call, or it is not known here. */
  readonly turnId: string | null;
}

/** The rows in order, and the calls that they name. */
export interface Table {
  order: readonly string[];
  rows: Map<string, Row>;
  calls: Map<string, Call>;
  /** What changed since this was last emptied: keys of rows, ids of calls. */
  touched: { rows: Set<string>; calls: Set<string> };
  /** The newest plan of those that were seen. */
  plan: Plan | null;
  /** For a turn, those that replaced each other at its place, as far as that was seen. */
  variants: Map<string, readonly string[]>;
}

export function emptyTable(): Table {
  const touched = { rows: new Set<string>(), calls: new Set<string>() };
  return { order: [], rows: new Map(), calls: new Map(), touched, plan: null, variants: new Map() };
}

/** A new row goes to the end; what is logged before a reply that streams stands before it already. */
export function putRow(table: Table, row: Row): void {
  if (!table.rows.has(row.key)) table.order = table.order.toSpliced(placeOf(table, row), 0, row.key);
  table.rows.set(row.key, row);
  table.touched.rows.add(row.key);
}

function placeOf({ order, rows }: Table, row: Row): number {
  const last = rows.get(order.at(-1) ?? "");
  const isEarlier = row.kind === "note" || row.kind === "call";
  return isEarlier && last?.kind === "step" && last.live ? order.length - 1 : order.length;
}

export function removeRows(table: Table, gone: (row: Row) => boolean): void {
  const keep: string[] = [];
  for (const key of table.order) {
    const row = table.rows.get(key);
    if (row === undefined || gone(row)) dropRow(table, key);
    else keep.push(key);
  }
  if (keep.length !== table.order.length) table.order = keep;
}

/** Takes the row and its calls out of the table, but leaves its place in the order to the caller. */
function dropRow(table: Table, key: string): void {
  const row = table.rows.get(key);
  table.rows.delete(key);
  table.touched.rows.add(key);
  const calls = row?.kind === "step" ? row.calls : row?.kind === "call" ? [key] : [];
  for (const id of calls) {
    table.calls.delete(id);
    table.touched.calls.add(id);
  }
}
