/** Saves one session, or several, as a file. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { ExportFormat } from "../api/types";
import { stopSelecting } from "../session_list/selection";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";

const MOST_EXPORTED = 200;
const ONE: readonly ExportFormat[] = ["markdown", "html", "json"];
const SEVERAL: readonly ExportFormat[] = [...ONE, "jsonl"];

export function ExportDialog({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const [format, setFormat] = useState<ExportFormat>("markdown");
  const words = texts.exporting;
  const [only] = ids;
  const address =
    ids.length === 1 && only !== undefined ? keryx.exportAddress(only, format) : keryx.exportsAddress(ids, format);
  const tooMany = ids.length > MOST_EXPORTED;
  return (
    <Dialog title={words.title} onClose={onClose}>
      <h2>{words.title}</h2>
      {ids.length > 1 ? <p class="text-dim">{words.archive(ids.length)}</p> : null}
      <fieldset class="session-dialogs-choices">
        <legend>{words.format}</legend>
        {(ids.length > 1 ? SEVERAL : ONE).map((name) => (
          <label key={name} class="fields-check">
            <input type="radio" name="format" checked={format === name} onChange={() => setFormat(name)} />
            <span>{words.formats[name]}</span>
          </label>
        ))}
      </fieldset>
      {tooMany ? <p class="text-error">{words.tooMany(MOST_EXPORTED)}</p> : null}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.cancel}</Button>
        {tooMany ? null : (
          <a
            class="button is-main"
            href={address}
            download
            onClick={() => {
              // After the browser has taken the address.
              setTimeout(() => {
                stopSelecting();
                onClose();
              });
            }}
          >
            {words.download}
          </a>
        )}
      </div>
    </Dialog>
  );
}
