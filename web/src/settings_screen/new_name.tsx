/** A name for a new thing: it must not exist yet. */

import { useState } from "preact/hooks";
import { configuration as words } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useSaving } from "./use_saving";

interface Props {
  label: string;
  names: readonly string[];
  onAdd: (name: string) => Promise<unknown>;
}

export function NewName({ label, names, onAdd }: Props) {
  const [name, setName] = useState("");
  const saving = useSaving();
  const exists = names.includes(name.trim());
  const add = async (): Promise<void> => {
    if (name.trim() === "" || exists) return;
    if (await saving.run(() => onAdd(name.trim()))) setName("");
  };
  return (
    <div class="settings-screen-part">
      <form
        class="setting-field-line"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <input
          dir="auto"
          aria-label={label}
          placeholder={label}
          autocomplete="off"
          spellcheck={false}
          maxLength={64}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" label={words.addTo(label)} busy={saving.state === "saving"}>
          {words.add}
        </Button>
      </form>
      {exists ? (
        <p class="text-error" role="alert">
          {words.nameTaken}
        </p>
      ) : null}
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
    </div>
  );
}
