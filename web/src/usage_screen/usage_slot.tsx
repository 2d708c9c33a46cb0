/** Where the usage goes: its screen is fetched when it is first shown. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { texts } from "../texts";
import { attempt } from "../ui/notice";

const loaded = signal<ComponentType<{ period: string }> | null>(null);

export function UsageSlot({ period }: { period: string }) {
  useEffect(() => {
    if (loaded.peek() !== null) return;
    void attempt(async () => {
      const { UsageScreen } = await import("./usage_screen");
      loaded.value = UsageScreen;
    });
  }, []);
  const Screen = loaded.value;
  return Screen === null ? <p class="layout-centre text-dim">{texts.loading}</p> : <Screen period={period} />;
}
