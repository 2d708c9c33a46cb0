/** Where the replay of a turn goes: it is fetched when it is first asked for. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { type ReplayedTurn, replayed } from "../session/replayed_turn";
import { attempt } from "../ui/notice";

const loaded = signal<ComponentType<{ turn: ReplayedTurn; onClose: () => void }> | null>(null);

export function ReplaySlot() {
  const turn = replayed.value;
  useEffect(() => {
    if (turn === null || loaded.peek() !== null) return;
    void attempt(async () => {
      const { ReplayDialog } = await import("./replay_dialog");
      loaded.value = ReplayDialog;
    });
  }, [turn]);
  const View = loaded.value;
  if (turn === null || View === null) return null;
  return <View key={turn.turnId} turn={turn} onClose={() => (replayed.value = null)} />;
}
