/** The time as a signal, ticking only while somebody reads it. */

import { signal } from "@preact/signals";

function ticking(everyMs: number): { readonly value: number } {
  let timer: ReturnType<typeof setInterval> | null = null;
  const now = signal(Date.now(), {
    watched() {
      this.value = Date.now();
      timer = setInterval(() => {
        now.value = Date.now();
      }, everyMs);
    },
    unwatched() {
      if (timer !== null) clearInterval(timer);
      timer = null;
    },
  });
  return now;
}

/** Often enough that a count of seconds is right while each of them lasts. */
export const moment = ticking(200);
export const second = ticking(1_000);
export const minute = ticking(60_000);
