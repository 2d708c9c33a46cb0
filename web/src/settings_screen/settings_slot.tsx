/** Where the settings go: they are fetched when they are first shown. */

import { useEffect } from "preact/hooks";
import { texts } from "../texts";
import { LateComponent } from "../ui/late_component";

const screen = new LateComponent<{ section: string }>(async () => (await import("./settings_screen")).SettingsScreen);

export function SettingsSlot({ section }: { section: string }) {
  useEffect(() => void screen.fetch(), []);
  const Screen = screen.value;
  return Screen === null ? <p class="layout-centre text-dim">{texts.loading}</p> : <Screen section={section} />;
}
