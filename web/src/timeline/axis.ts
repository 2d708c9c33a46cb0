/** The time axis that the calls of a step share; numbers, so that bars are drawn anew only if it changes. */

import { computed, type ReadonlySignal } from "@preact/signals";
import { serverTime } from "../api/server_clock";
import type { SessionStore } from "../session/session_store";
import { second } from "../ui/clock";
import { originOf, reachOf } from "./bars";
import { tickFor } from "./scale";

export interface Axis {
  /** Where it begins, in seconds of the server's clock; null before anything can be drawn. */
  readonly origin: ReadonlySignal<number | null>;
  /** Seconds between two ticks. */
  readonly tick: ReadonlySignal<number>;
}

export function axisOf(session: SessionStore, ids: readonly string[], repliedAt: number | null): Axis {
  const calls = computed(() => ids.flatMap((id) => session.call(id).value ?? []));
  const origin = computed(() => originOf(repliedAt, calls.value));
  const tick = computed(() => {
    const from = origin.value;
    // The clock is read, and so ticks, only while something runs.
    return from === null ? tickFor(0) : tickFor(reachOf(calls.value, from, () => serverTime(second.value) + 1));
  });
  return { origin, tick };
}
