/** Where the settings go: they are fetched when they are first shown. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { texts } from "../texts";
import { attempt } from "../ui/notice";

const loaded = signal<ComponentType<{ section: string }> | null>(null);

export function SettingsSlot({ section }: { section: string }) {
  useEffect(() => {
    if (loaded.peek() !== null) return;
    void attempt(async () => {
      const { SettingsScreen } = await import("./settings_screen");
      loaded.value = SettingsScreen;
    });
  }, []);
  const Screen = loaded.value;
  return Screen === null ? <p class="layout-centre text-dim">{texts.loading}</p> : <Screen section={section} />;
}
