/** Sessions in the order and the groups in which a person looks for them. Pure. */

import type { SessionSummary } from "../api/types";

export interface Group {
  /** pinned, active, or the day as YYYY-MM-DD. */
  readonly name: string;
  /** Days before today; -1 for what is not a day. */
  readonly daysAgo: number;
  readonly ids: readonly string[];
}

const DAY_MS = 86_400_000;

export function groupByDay(sessions: readonly SessionSummary[], now: number): Group[] {
  const groups = new Map<string, { daysAgo: number; members: SessionSummary[] }>();
  const put = (name: string, daysAgo: number, summary: SessionSummary): void => {
    const group = groups.get(name);
    if (group === undefined) groups.set(name, { daysAgo, members: [summary] });
    else group.members.push(summary);
  };
  const newest = [...sessions].sort((a, b) => b.changed_at - a.changed_at || (a.session_id < b.session_id ? 1 : -1));
  for (const summary of newest) if (summary.pinned) put("pinned", -1, summary);
  // What runs changes all the time; by its creation it keeps its place.
  const active = newest.filter((summary) => !summary.pinned && summary.state !== "idle");
  for (const summary of active.sort((a, b) => b.created_at - a.created_at)) put("active", -1, summary);
  for (const summary of newest) {
    // Those with tags are in their folders.
    if (summary.pinned || summary.state !== "idle" || (summary.tags ?? []).length > 0) continue;
    const day = startOfDay(summary.changed_at * 1_000);
    put(dayName(day), Math.max(0, Math.round((startOfDay(now) - day) / DAY_MS)), summary);
  }
  return Array.from(groups, ([name, { daysAgo, members }]) => ({
    name,
    daysAgo,
    ids: members.map((summary) => summary.session_id),
  }));
}

function startOfDay(ms: number): number {
  const date = new Date(ms);
  return new Date(date.getFullYear(), date.getMonth(), date.getDate()).getTime();
}

function dayName(ms: number): string {
  const date = new Date(ms);
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}`;
}
