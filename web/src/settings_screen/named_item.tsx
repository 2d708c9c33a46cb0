/** One of several things with names: a line with buttons, and its form below when it is edited. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { texts } from "../texts";
import { configuration as words } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useSaving } from "./use_saving";

interface Props {
  name: string;
  /** What stands beside the name. */
  about?: ComponentChildren;
  buttons?: ComponentChildren;
  /** Its form; it gets a function that closes it. */
  form?: (close: () => void) => ComponentChildren;
  onRemove?: () => Promise<unknown>;
  removeLabel?: string;
  removeWord?: string;
  removeQuestion?: string;
}

export function NamedItem({ name, about, buttons, form, onRemove, ...removal }: Props) {
  const [open, setOpen] = useState<"form" | "removal" | null>(null);
  const saving = useSaving();
  const { removeWord = words.remove, removeQuestion = words.reallyRemove(name) } = removal;
  const close = (): void => setOpen(null);
  return (
    <li class="settings-screen-item">
      <div class="settings-screen-item-head">
        <b dir="auto">{name}</b>
        <span class="settings-screen-about" dir="auto">
          {about}
        </span>
        <span class="layout-buttons">
          {buttons}
          {form === undefined ? null : (
            <Button
              label={words.editNamed(name)}
              pressed={open === "form"}
              onClick={() => setOpen(open === "form" ? null : "form")}
            >
              {words.edit}
            </Button>
          )}
          {onRemove === undefined ? null : (
            <Button label={removal.removeLabel ?? words.removeNamed(name)} onClick={() => setOpen("removal")}>
              {removeWord}
            </Button>
          )}
        </span>
      </div>
      {open === "removal" && onRemove !== undefined ? (
        <div class="settings-screen-question" role="group" aria-label={removeQuestion}>
          <span>{removeQuestion}</span>
          <Button onClick={close}>{texts.cancel}</Button>
          <Button kind="stop" busy={saving.state === "saving"} onClick={() => void saving.run(onRemove).then(close)}>
            {removeWord}
          </Button>
        </div>
      ) : null}
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
      {open === "form" && form !== undefined ? form(close) : null}
    </li>
  );
}
