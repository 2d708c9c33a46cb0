/** Above the list while sessions are selected: how many, and what can be done with all of them. */

import * as keryx from "../api/client";
import { type SessionDialog, sessionDialog } from "../navigation/panels";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { selected, stopSelecting } from "./selection";
import { sessions } from "./sessions";

export function SelectionBar({ onAll }: { onAll: () => void }) {
  const ids = [...selected.value];
  const none = ids.length === 0;
  const archived = sessions.archived.value;
  const words = texts.selecting;
  const show = (kind: "tags" | "export" | "delete"): void => {
    sessionDialog.value = { kind, ids } satisfies SessionDialog;
  };
  const archive = async (): Promise<void> => {
    await attempt(() => Promise.all(ids.map((id) => keryx.changeSession(id, { archived: !archived }))));
    stopSelecting();
  };
  return (
    <div class="session-list-selection" role="group" aria-label={words.bar}>
      <div class="session-list-tools">
        <b class="layout-grow" role="status">
          {words.count(ids.length)}
        </b>
        <Button kind="quiet" title={words.keys} onClick={onAll}>
          {words.all}
        </Button>
        <Button kind="quiet" onClick={stopSelecting}>
          {words.stop}
        </Button>
      </div>
      <div class="layout-buttons">
        <Button disabled={none} onClick={() => void archive()}>
          {archived ? words.unarchive : words.archive}
        </Button>
        <Button disabled={none} onClick={() => show("tags")}>
          {words.tag}
        </Button>
        <Button disabled={none} onClick={() => show("export")}>
          {words.export}
        </Button>
        <Button kind="stop" disabled={none} onClick={() => show("delete")}>
          {words.delete}
        </Button>
      </div>
    </div>
  );
}
