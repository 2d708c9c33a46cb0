/** Where the dialogs over the page go: they are fetched once the page is drawn, or for the first that opens. */

import { useComputed } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { rulesShown } from "./approvals/rules_shown";
import { helpShown } from "./composer/run_command";
import { memoryShown } from "./memory/memory_shown";
import { modelsShown } from "./setup/setup_state";
import { whenIdle } from "./ui/idle";
import { LateComponent } from "./ui/late_component";
import { usageShown } from "./usage/usage_today";

const OPENED_BY = [usageShown, rulesShown, memoryShown, modelsShown, helpShown];

const dialogs = new LateComponent<object>(async () => (await import("./dialogs")).Dialogs);

export function DialogsSlot() {
  const isOpened = useComputed(() => OPENED_BY.some((shown) => shown.value)).value;
  useEffect(() => whenIdle(() => dialogs.prefetch()), []);
  useEffect(() => {
    if (!isOpened) return;
    void dialogs.fetch().then((isLoaded) => {
      if (!isLoaded) for (const shown of OPENED_BY) shown.value = false;
    });
  }, [isOpened]);
  const Dialogs = dialogs.value;
  return Dialogs === null ? null : <Dialogs />;
}
