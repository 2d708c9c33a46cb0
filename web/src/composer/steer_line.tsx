/** What a steer would stop right now, and the way to say it without stopping anything. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";

export const STEER_SAYS = "steer-says";

/** Only the last step can have something that runs. */
function stops(session: SessionStore): string {
  const last = session.order.value.findLast((key) => session.peek(key)?.kind === "step");
  const row = last === undefined ? undefined : session.row(last).value;
  if (row?.kind !== "step" || row.turnId !== session.head.turn.value?.turnId) return texts.steer.now;
  const running = row.calls.filter((id) => session.call(id).value?.phase === "started").length;
  if (running > 0) return texts.steer.calls(running);
  return row.live ? texts.steer.reply : texts.steer.now;
}

export function SteerLine({ session, onAfter }: { session: SessionStore; onAfter: () => void }) {
  const said = useMemo(() => computed(() => stops(session)), [session]);
  return (
    <p class="composer-line">
      <span id={STEER_SAYS}>{said}</span>
      <Button kind="quiet" keys="Alt ↵" title={texts.steer.afterStepAbout} onClick={onAfter}>
        {texts.steer.afterStep}
      </Button>
    </p>
  );
}
