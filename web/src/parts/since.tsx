/** How long something runs by now, beside its bar. */

import { useComputed, type ReadonlySignal } from "@preact/signals";
import { moment } from "../state/clock";
import { serverTime } from "../state/serverclock";
import { elapsed } from "../texts/amounts";

/** Changes when another second is over, so whoever shows it is not drawn more often than that. */
export function useElapsed(at: number): ReadonlySignal<string> {
  return useComputed(() => elapsed(serverTime(moment.value) - at));
}

export function Since({ at, silent = false }: { at: number; silent?: boolean }) {
  return (
    <span class="num" aria-hidden={silent || undefined}>
      {useElapsed(at)}
    </span>
  );
}
