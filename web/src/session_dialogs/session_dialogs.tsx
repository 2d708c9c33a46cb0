/** The dialogs about one session or several: tags, export, import, links, deletion. */

import type { SessionDialog } from "../navigation/panels";
import { DeleteDialog } from "./delete_dialog";
import { ExportDialog } from "./export_dialog";
import { ImportDialog } from "./import_dialog";
import { ShareDialog } from "./share_dialog";
import { TagsDialog } from "./tags_dialog";

export function SessionDialogs({ dialog, onClose }: { dialog: SessionDialog; onClose: () => void }) {
  switch (dialog.kind) {
    case "tags":
      return <TagsDialog ids={dialog.ids} onClose={onClose} />;
    case "export":
      return <ExportDialog ids={dialog.ids} onClose={onClose} />;
    case "delete":
      return <DeleteDialog ids={dialog.ids} onClose={onClose} />;
    case "share":
      return <ShareDialog id={dialog.id} onClose={onClose} />;
    case "import":
      return <ImportDialog onClose={onClose} />;
  }
}
