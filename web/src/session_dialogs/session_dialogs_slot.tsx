/** Where the dialogs about sessions go: they are fetched when the first one is shown. */

import { useEffect } from "preact/hooks";
import { type SessionDialog, sessionDialog } from "../navigation/panels";
import { LateComponent } from "../ui/late_component";

const dialogs = new LateComponent<{ dialog: SessionDialog; onClose: () => void }>(
  async () => (await import("./session_dialogs")).SessionDialogs,
);

export function SessionDialogsSlot() {
  const dialog = sessionDialog.value;
  useEffect(() => {
    if (dialog === null) return;
    void dialogs.fetch().then((isLoaded) => {
      if (!isLoaded) sessionDialog.value = null;
    });
  }, [dialog]);
  const Dialogs = dialogs.value;
  if (dialog === null || Dialogs === null) return null;
  return <Dialogs dialog={dialog} onClose={() => (sessionDialog.value = null)} />;
}
