/** Where the time of a turn went: that of the chosen call, or the last one. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Labelled } from "../parts/callbody";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { turnTimes } from "../timeline/turns";
import { Share } from "./share";

export function ThisTurn({ opened, callId = null }: { opened: Opened; callId?: string | null }) {
  const found = useMemo(
    () =>
      computed(() => {
        const turnId = turnOf(opened, callId);
        return turnId === null ? null : turnTimes(opened, turnId);
      }),
    [opened, callId],
  );
  const times = found.value;
  if (times === null) return null;
  const { label, model, tools, saved, serial } = texts.inspector.thisTurn;
  const most = Math.max(times.model + times.tools, times.serial, 0.001);
  return (
    <Labelled label={label}>
      <div class="shares">
        <Share name={model} part={times.model / most} number={seconds(times.model)} />
        <Share name={tools} part={times.tools / most} number={seconds(times.tools)} />
        {times.saved >= 0.1 ? <Share name={saved} part={times.saved / most} number={seconds(times.saved)} kind="saved" /> : null}
      </div>
      {times.saved >= 0.1 ? <p class="dim">{serial(seconds(times.serial))}</p> : null}
    </Labelled>
  );
}

function turnOf(opened: Opened, callId: string | null): string | null {
  const order = opened.order.value;
  for (let at = order.length - 1; at >= 0; at--) {
    const row = opened.peek(order[at]!);
    if (row === undefined || row.turnId === null || row.kind === "call") continue;
    if (callId === null || (row.kind === "step" && row.calls.includes(callId))) return row.turnId;
  }
  return null;
}
