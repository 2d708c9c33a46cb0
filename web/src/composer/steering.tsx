/** What a steer would stop right now, and the way to say it without stopping anything. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Button } from "../parts/button";
import type { Opened } from "../state/opened";
import { texts } from "../texts";

export const STEER_SAYS = "steer-says";

/** Only the last step can have something that runs. */
function stops(opened: Opened): string {
  const last = opened.order.value.findLast((key) => opened.peek(key)?.kind === "step");
  const row = last === undefined ? undefined : opened.row(last).value;
  if (row?.kind !== "step" || row.turnId !== opened.head.turn.value?.turnId) return texts.steer.now;
  const running = row.calls.filter((id) => opened.call(id).value?.phase === "started").length;
  if (running > 0) return texts.steer.calls(running);
  return row.live ? texts.steer.reply : texts.steer.now;
}

export function SteerLine({ opened, onAfter }: { opened: Opened; onAfter: () => void }) {
  const said = useMemo(() => computed(() => stops(opened)), [opened]);
  return (
    <p class="steerline">
      <span id={STEER_SAYS}>{said}</span>
      <Button kind="quiet" keys="Alt ↵" title={texts.steer.afterStepAbout} onClick={onAfter}>
        {texts.steer.afterStep}
      </Button>
    </p>
  );
}
