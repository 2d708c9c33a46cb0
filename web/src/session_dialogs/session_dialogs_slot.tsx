/** Where the dialogs about sessions go: they are fetched when the first one is shown. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { useEffect } from "preact/hooks";
import { type SessionDialog, sessionDialog } from "../navigation/panels";
import { attempt } from "../ui/notice";

const loaded = signal<ComponentType<{ dialog: SessionDialog; onClose: () => void }> | null>(null);

export function SessionDialogsSlot() {
  const dialog = sessionDialog.value;
  useEffect(() => {
    if (dialog === null || loaded.peek() !== null) return;
    void attempt(async () => {
      const { SessionDialogs } = await import("./session_dialogs");
      loaded.value = SessionDialogs;
    }).then((isLoaded) => {
      if (!isLoaded) sessionDialog.value = null;
    });
  }, [dialog]);
  const Dialogs = loaded.value;
  if (dialog === null || Dialogs === null) return null;
  return <Dialogs dialog={dialog} onClose={() => (sessionDialog.value = null)} />;
}
