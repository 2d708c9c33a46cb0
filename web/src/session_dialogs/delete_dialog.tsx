/** Asks once whether all selected sessions are to be deleted, and says how many. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import { stopSelecting } from "../session_list/selection";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { attempt } from "../ui/notice";

export function DeleteDialog({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const [busy, setBusy] = useState(false);
  const words = texts.selecting;
  const remove = async (): Promise<void> => {
    setBusy(true);
    for (const id of ids) {
      if (!(await attempt(() => keryx.deleteSession(id)))) break;
      sessions.forget(id);
    }
    stopSelecting();
    onClose();
  };
  return (
    <Dialog title={words.deleteTitle(ids.length)} onClose={onClose}>
      <h2>{words.deleteTitle(ids.length)}</h2>
      <p>{words.deleteBody(ids.length)}</p>
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button kind="stop" busy={busy} onClick={() => void remove()}>
          {words.delete}
        </Button>
      </div>
    </Dialog>
  );
}
