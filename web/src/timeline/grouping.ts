/** The calls of a container as few lines: alike ones in one. Pure. */

import type { NestedCalls, Outcome } from "../api/types";
import { AGENT_TOOL } from "../session/child_agents";
import type { Nested, NestedItem, NestedTool } from "../session/rows";

/** How a bar looks: an outcome, that there is none yet, or that a command ended with another code than 0. */
export type BarForm = Outcome | "running" | "exited";

export interface GroupedCall {
  readonly callId: string;
  readonly preview: string;
  readonly start: number;
  /** Null while it runs. */
  readonly end: number | null;
}

export interface NestedLine {
  readonly key: string;
  readonly tool: string;
  readonly form: BarForm;
  /** The call, if it is the line of just one. */
  readonly single: string | null;
  readonly count: number;
  /** How many of them have ended; less than the count while some run. */
  readonly ended: number;
  readonly preview: string;
  readonly start: number;
  readonly end: number | null;
  /** Each of them, where each is known. */
  readonly ones: readonly GroupedCall[];
}

/** What is done is alike sooner than what runs or went wrong, which is looked at one by one. */
const SINGLY: Record<BarForm, number> = {
  completed: 2,
  running: 5,
  exited: 3,
  failed: 3,
  denied: 3,
  cancelled: 3,
  unknown: 3,
};

/** A child agent leads to a session of its own, so it has a line of its own as long as there is room. */
const SINGLE_AGENTS = 12;

const FORMS = Object.keys(SINGLY) as BarForm[];

interface Item extends GroupedCall {
  readonly tool: string;
  readonly form: BarForm;
}

/** While the container runs: times are of the wall clock, as its events have them. */
export function runningLines(nested: Nested): NestedLine[] {
  const items = nested.listed.map(itemOf);
  return nested.bunched ? [...crowdOf(nested), ...folded(items)] : folded(items);
}

/** The sums, without those that have lines of their own. */
function crowdOf(nested: Nested): NestedLine[] {
  return nested.tools.flatMap((toolSum) =>
    bunches(toolSum, nested.listed.filter(({ tool }) => tool === toolSum.tool).length),
  );
}

/** When it has ended: `began` is when the container did. */
export function storedLines(all: NestedCalls, began: number, seen: readonly NestedItem[]): NestedLine[] {
  const previews = new Map(seen.map((item) => [item.callId, item.preview]));
  const items = (all.calls ?? []).map(({ call_id, tool, outcome, start, duration, preview, exit_code }) => ({
    callId: call_id,
    tool,
    form: nestedForm(outcome, exit_code),
    preview: preview || (previews.get(call_id) ?? ""),
    start: began + start,
    end: began + start + duration,
  }));
  return [...folded(items), ...(all.sums ?? []).flatMap((sum) => rest(sum, items))];
}

function nestedForm(outcome: BarForm, exitCode: number | null | undefined): BarForm {
  return outcome === "completed" && exitCode ? "exited" : outcome;
}

function itemOf({ callId, tool, preview, at, outcome, duration, exitCode }: NestedItem): Item {
  const end = outcome === null ? null : at + (duration ?? 0);
  return { callId, tool, preview, form: nestedForm(outcome ?? "running", exitCode), start: at, end };
}

function folded(items: readonly Item[]): NestedLine[] {
  const groups = new Map<string, Item[]>();
  for (const item of items) {
    const key = `${item.tool} ${item.form}`;
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  const lines = [...groups].flatMap(([key, group]) =>
    group.length > singly(group[0]!) ? [together(key, group)] : group.map(alone),
  );
  return lines.sort((a, b) => FORMS.indexOf(a.form) - FORMS.indexOf(b.form) || a.start - b.start);
}

function singly({ tool, form }: Item): number {
  return tool === AGENT_TOOL ? SINGLE_AGENTS : SINGLY[form];
}

function alone(item: Item): NestedLine {
  const { callId, tool, form, preview, start, end } = item;
  return {
    key: callId,
    tool,
    form,
    single: callId,
    count: 1,
    ended: end === null ? 0 : 1,
    preview,
    start,
    end,
    ones: [],
  };
}

function together(key: string, group: readonly Item[]): NestedLine {
  const first = group[0]!;
  let start = first.start;
  let end = first.end;
  for (const item of group) {
    start = Math.min(start, item.start);
    end = end === null || item.end === null ? null : Math.max(end, item.end);
  }
  const last = group[group.length - 1]!;
  const preview = first.preview && last.preview ? `${first.preview} … ${apart(first.preview, last.preview)}` : "";
  const ended = first.form === "running" ? 0 : group.length;
  const { tool, form } = first;
  return { key, tool, form, single: null, count: group.length, ended, preview, start, end, ones: group };
}

/** What the second is told from the first by: words that both begin with are said once. */
function apart(first: string, second: string): string {
  let at = 0;
  while (at < first.length && first[at] === second[at]) at++;
  return at === second.length ? second : second.slice(second.lastIndexOf(" ", at - 1) + 1);
}

const WRONG = FORMS.filter((form): form is Outcome => !["running", "completed", "exited"].includes(form));

/** Of bunches only the sums are known; what went wrong is told apart from what is done or runs. */
function bunches({ tool, began, ended, firstAt, lastAt }: NestedTool, apart: number): NestedLine[] {
  const line = (form: BarForm, count: number, done: number): NestedLine => {
    const rest = { single: null, preview: "", start: firstAt, end: form === "running" ? null : lastAt, ones: [] };
    return { key: `${tool} ${form} bunch`, tool, form, count, ended: done, ...rest };
  };
  const wrong = WRONG.map((form) => line(form, ended[form] ?? 0, ended[form] ?? 0));
  const done = ended.completed ?? 0;
  const count = Math.max(
    wrong.reduce((left, line) => left - line.count, began - apart),
    done,
  );
  return [line(done < count ? "running" : "completed", count, done), ...wrong].filter((line) => line.count > 0);
}

/** How many there are, where nothing else is known of them. */
export function unknownLine({ began: all, ended, listed }: Nested, began: number): NestedLine {
  const count = Math.max(all - listed.length, ended);
  const runs = ended < count;
  const form = runs ? "running" : "completed";
  const end = runs ? null : began;
  return { key: "crowd", tool: "", form, single: null, count, ended, preview: "", start: began, end, ones: [] };
}

/** What is past those that are listed began after them; when exactly is not told. */
function rest(sum: NonNullable<NestedCalls["sums"]>[number], items: readonly Item[]): NestedLine[] {
  // Logs of before do not tell how the others ended.
  const ended = sum.ended ?? { completed: sum.completed, failed: sum.calls - sum.completed };
  const start = Math.max(0, ...items.map((item) => item.start));
  const one = { tool: sum.tool, single: null, preview: "", start, end: start, ones: [] };
  const line = (form: BarForm, count: number): NestedLine[] =>
    count > 0 ? [{ ...one, key: `${sum.tool} ${form} rest`, form, count, ended: count }] : [];
  return (["completed", ...WRONG] as const).flatMap((form) => line(form, ended[form] ?? 0));
}
