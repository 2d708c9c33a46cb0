/** Periods, their days, and shares. Pure. */

import type { UsageGroup } from "../api/types";
import { PERIODS, type Period } from "../texts/usage_screen";

export const periodOf = (name: string): Period => PERIODS.find((period) => period === name) ?? "30";

/** When the period begins where the person is, in seconds; null: with the first use. */
export function beginOf(period: Period, now: number): number | null {
  if (period === "all") return null;
  const day = new Date(now);
  day.setHours(0, 0, 0, 0);
  // By the calendar: a day may have 23 hours.
  if (period !== "today") day.setDate(day.getDate() - Number(period) + 1);
  return day.getTime() / 1_000;
}

const MOST_DAYS = 92;
const NONE = { requests: 0, input_tokens: 0, cached_tokens: 0, output_tokens: 0, reasoning_tokens: 0 };

function emptyDay(name: string): UsageGroup {
  return { name, ...NONE, cost: 0, known_cost: 0, turns: 0, failed_turns: 0, first_token: null };
}

function isoDay(day: Date): string {
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${day.getFullYear()}-${two(day.getMonth() + 1)}-${two(day.getDate())}`;
}

/** A bar for each day, also for those on which nothing was used; of many days, one for each month. */
export function barsOf(groups: readonly UsageGroup[], begin: number | null, now: number): readonly UsageGroup[] {
  const first = begin === null ? groups[0]?.name : isoDay(new Date(begin * 1_000));
  if (first === undefined) return [];
  const byName = new Map(groups.map((group) => [group.name, group]));
  const [year, month, date] = first.split("-").map(Number) as [number, number, number];
  const last = isoDay(new Date(now));
  const days: UsageGroup[] = [];
  for (let number = 0; ; number++) {
    // At noon, which no change of the clock moves to another day.
    const name = isoDay(new Date(year, month - 1, date + number, 12));
    if (name > last) break;
    days.push(byName.get(name) ?? emptyDay(name));
  }
  return days.length > MOST_DAYS ? monthsOf(days) : days;
}

function monthsOf(days: readonly UsageGroup[]): readonly UsageGroup[] {
  const months = new Map<string, UsageGroup>();
  for (const day of days) {
    const name = day.name.slice(0, 7);
    months.set(name, add(months.get(name) ?? emptyDay(name), day));
  }
  return [...months.values()];
}

function add(sum: UsageGroup, group: UsageGroup): UsageGroup {
  return {
    name: sum.name,
    requests: sum.requests + group.requests,
    input_tokens: sum.input_tokens + group.input_tokens,
    cached_tokens: sum.cached_tokens + group.cached_tokens,
    output_tokens: sum.output_tokens + group.output_tokens,
    reasoning_tokens: sum.reasoning_tokens + group.reasoning_tokens,
    // A cost that is not known makes the sum unknown.
    cost: sum.cost === null || group.cost === null ? null : sum.cost + group.cost,
    known_cost: sum.known_cost + group.known_cost,
    turns: (sum.turns ?? 0) + (group.turns ?? 0),
    failed_turns: (sum.failed_turns ?? 0) + (group.failed_turns ?? 0),
    // A mean of means says nothing; the chart does not show it.
    first_token: null,
  };
}

/** Null: there is nothing to have a share of. */
export const shareOf = (part: number, whole: number): number | null => (whole > 0 ? part / whole : null);

export const allTokens = (group: UsageGroup): number => group.input_tokens + group.output_tokens;

/** The most first; with the same amount, by name. */
export function mostFirst<T extends { readonly name: string }>(
  groups: readonly T[],
  amount: (group: T) => number,
): T[] {
  return groups.toSorted((one, other) => amount(other) - amount(one) || (one.name < other.name ? -1 : 1));
}
