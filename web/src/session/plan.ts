/** The plan that a session's calls of `todo` write: each call replaces it. Pure. */

import type { CallFinished, NewestPlan, PlanItem } from "../api/types";
import type { Plan, Table } from "./rows";

/** The tool whose last completed call holds the plan. */
export const PLAN_TOOL = "todo";

/** A call has ended: what it wrote is the plan, unless a newer one is here. */
export function notePlan(table: Table, event: CallFinished): void {
  if (event.tool !== PLAN_TOOL || event.outcome !== "completed") return;
  const items = event.result.flatMap((part) => (part.type === "json" ? itemsIn(part.value) : []));
  replacePlan(table, { items, seq: event.seq, turnId: event.turn_id ?? null });
}

export function replacePlan(table: Table, plan: Plan): void {
  if (plan.seq > (table.plan?.seq ?? 0)) table.plan = plan;
}

/** What the server answers when it is asked for the plan. */
export function readPlan({ items = [], seq = 0 }: NewestPlan): Plan {
  return { items, seq, turnId: null };
}

/** The steps in the result of a call; none if it has another form. */
function itemsIn(value: unknown): readonly PlanItem[] {
  const { items } = (value ?? {}) as { items?: unknown };
  return Array.isArray(items) ? items.filter(isItem) : [];
}

function isItem(item: unknown): item is PlanItem {
  return typeof (item as PlanItem | null)?.text === "string";
}
