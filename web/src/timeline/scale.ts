/** A time axis of four parts that are easy to read. Pure. */

import { shortNumber } from "../texts/amounts";

export const PARTS = 4;

/** Seconds from one tick to the next; four of them are the axis. */
const TICKS = [0.25, 0.5, 1, 2, 3, 5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600];

/** The shortest axis that holds this many seconds. What is quick stays a sliver on one second. */
export function tickFor(seconds: number): number {
  const last = TICKS[TICKS.length - 1]!;
  return TICKS.find((tick) => tick * PARTS >= seconds) ?? last * Math.ceil(seconds / PARTS / last);
}

/** What stands at the ticks; the unit is said once. */
export function tickTexts(tick: number): readonly string[] {
  const [unit, name] = tick >= 3_600 ? [3_600, "h"] : tick >= 60 ? [60, "min"] : [1, "s"];
  return Array.from({ length: PARTS + 1 }, (_, at) => {
    const value = (tick * at) / unit;
    return at === 0 ? `0 ${name}` : shortNumber(value);
  });
}

/** How much of the axis lies before this moment, in percent; never outside of it. */
export function placeOf(seconds: number, tick: number): number {
  return Math.min(100, Math.max(0, (seconds / (tick * PARTS)) * 100));
}
