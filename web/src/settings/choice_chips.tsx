/** The two choices that most people make: the model and the folder of the next session, as chips. */

import { useState } from "preact/hooks";
import { models, profiles } from "../session/choices";
import { lookForModels, offeredModels } from "../setup/setup_state";
import { texts } from "../texts";
import { type ChosenSettings, FolderField } from "./settings_fields";

interface Props {
  chosen: ChosenSettings;
  onChange: (changes: ChosenSettings) => void;
}

export function ModelChip({ chosen, onChange }: Props) {
  const { models: offered, default: standard } = models.value;
  const names = new Set([...offered, ...offeredModels.value, ...(chosen.model ? [chosen.model] : [])]);
  return (
    <select
      class="choice-chips-model"
      aria-label={texts.settings.model}
      value={chosen.model ?? ""}
      // What the servers have is asked when somebody wants to choose.
      onFocus={() => void lookForModels()}
      onChange={(event) => onChange({ model: event.currentTarget.value })}
    >
      <option value="">{standard ?? texts.newSession.defaultModel}</option>
      {[...names]
        .filter((name) => name !== standard)
        .map((name) => (
          <option key={name} value={name}>
            {name}
          </option>
        ))}
    </select>
  );
}

export function FolderChip({ chosen, onChange }: Props) {
  const [open, setOpen] = useState(false);
  const folder = chosen.workspace || profiles.value.workspace;
  if (open) {
    return (
      <form
        class="choice-chips-folder"
        onSubmit={(event) => {
          event.preventDefault();
          setOpen(false);
        }}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          setOpen(false);
        }}
      >
        <FolderField chosen={chosen} onChange={onChange} focused />
      </form>
    );
  }
  return (
    <button
      type="button"
      class="chip choice-chips-button"
      title={folder}
      aria-label={texts.newSession.folder(folder)}
      onClick={() => setOpen(true)}
    >
      <span>{folder.split("/").filter(Boolean).at(-1) ?? folder}</span>
    </button>
  );
}
