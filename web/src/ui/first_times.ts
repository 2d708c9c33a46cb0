/**
 * The browser's tables of dates take it 10 to 20 ms at their first use. Nothing waits to be drawn for
 * them: times are shown once the first frames are past.
 */

import { signal } from "@preact/signals";
import { clockTime } from "../texts/amounts";
import { whenIdle } from "./idle";

export const canShowTimes = signal(false);

export function prepareTimes(): void {
  whenIdle(() => {
    clockTime(0);
    canShowTimes.value = true;
  });
}
