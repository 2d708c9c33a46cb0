/** Where the usage goes: its screen is fetched when it is first shown. */

import { useEffect } from "preact/hooks";
import { texts } from "../texts";
import { LateComponent } from "../ui/late_component";

const screen = new LateComponent<{ period: string }>(async () => (await import("./usage_screen")).UsageScreen);

export function UsageSlot({ period }: { period: string }) {
  useEffect(() => void screen.fetch(), []);
  const Screen = screen.value;
  return Screen === null ? <p class="layout-centre text-dim">{texts.loading}</p> : <Screen period={period} />;
}
