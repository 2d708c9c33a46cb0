/** The last line of a turn that ran calls: where its time went, and what running them at once saved. */

import { computed } from "@preact/signals";
import { useMemo } from "preact/hooks";
import type { Row } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import type { TurnTimes } from "./turn_times";
import { lastRows, turnTimes } from "./turns";

/** Less than this is not worth a word. */
const WORTH_SAYING = 0.1;

export function TurnLine({ session, row }: { session: SessionStore; row: Row }) {
  const { turnId, key } = row;
  const times = useMemo(
    () =>
      computed(() => {
        if (turnId === null || lastRows(session).value.get(turnId) !== key) return null;
        return session.head.turn.value?.turnId === turnId ? null : turnTimes(session, turnId);
      }),
    [session, turnId, key],
  );
  return times.value === null ? null : <p class="turn-line">{timesText(times.value)}</p>;
}

function timesText({ model, tools, serial, saved }: TurnTimes): string {
  const { turn, saved: savedText } = texts.timeline;
  const said = turn(seconds(model), seconds(tools));
  return `${said}${saved < WORTH_SAYING ? "" : savedText(seconds(serial), seconds(saved))}.`;
}
