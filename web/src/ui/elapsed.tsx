/** How long something runs by now, beside its bar. */

import { type ReadonlySignal, useComputed } from "@preact/signals";
import { serverTime } from "../api/server_clock";
import { elapsed } from "../texts/amounts";
import { moment } from "./clock";

/** Changes when another second is over, so whoever shows it is not drawn more often than that. */
export function useElapsed(at: number): ReadonlySignal<string> {
  return useComputed(() => elapsed(serverTime(moment.value) - at));
}

export function Elapsed({ at, silent = false }: { at: number; silent?: boolean }) {
  return (
    <span class="elapsed" aria-hidden={silent || undefined}>
      {useElapsed(at)}
    </span>
  );
}
