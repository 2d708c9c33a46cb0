/** Where the replay of a turn goes: it is fetched when it is first asked for. */

import { useEffect } from "preact/hooks";
import { type ReplayedTurn, replayed } from "../session/replayed_turn";
import { LateComponent } from "../ui/late_component";

const dialog = new LateComponent<{ turn: ReplayedTurn; onClose: () => void }>(
  async () => (await import("./replay_dialog")).ReplayDialog,
);

export function ReplaySlot() {
  const turn = replayed.value;
  useEffect(() => {
    if (turn !== null) void dialog.fetch();
  }, [turn]);
  const View = dialog.value;
  if (turn === null || View === null) return null;
  return <View key={turn.turnId} turn={turn} onClose={() => (replayed.value = null)} />;
}
