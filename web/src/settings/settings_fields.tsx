/** What a session works with: shown to be changed, one field each. */

import { useState } from "preact/hooks";
import type { ApprovalMode, SettingsChanges } from "../api/types";
import { models, profiles } from "../session/choices";
import { lookForModels, offeredModels } from "../setup/setup_state";
import { texts } from "../texts";
import { Toolsets } from "./toolsets";

export type ChosenSettings = Pick<
  SettingsChanges,
  "model" | "workspace" | "profile" | "personality" | "effort" | "tools" | "approvals"
>;

interface Props {
  chosen: ChosenSettings;
  profile: string | null;
  onChange: (changes: ChosenSettings) => void;
}

const FOLDER = "session-folder";
const EFFORTS = Object.entries(texts.settings.efforts);
const APPROVALS = Object.entries(texts.settings.approvalModes);

/** All of them. */
export function SettingsFields({ chosen, profile, onChange }: Props) {
  const { models: offered, default: standard } = models.value;
  return (
    <div class="fields">
      <Choice
        label={texts.settings.model}
        value={chosen.model ?? ""}
        standard={standard === null ? texts.settings.default : `${texts.settings.default} (${standard})`}
        options={withValue([...new Set([...offered, ...offeredModels.value])], chosen.model).map((name) => [
          name,
          name,
        ])}
        // What the servers have is asked when somebody wants to choose.
        onFocus={() => void lookForModels()}
        onChange={(model) => onChange({ model })}
        required={chosen.model !== undefined}
      />
      <label for={FOLDER}>
        <span>{texts.settings.workspace}</span>
        <FolderField chosen={chosen} onChange={onChange} />
      </label>
      <Others chosen={chosen} profile={profile} onChange={onChange} />
    </div>
  );
}

/** Those that few people change: all but the model and the folder. */
export function MoreSettings(props: Props) {
  return (
    <div class="fields">
      <Others {...props} />
    </div>
  );
}

export function FolderField({ chosen, onChange, focused }: Omit<Props, "profile"> & { focused?: boolean }) {
  const { workspaces, workspace } = profiles.value;
  // What is being typed: the field may be drawn again meanwhile, for example when the list of folders comes.
  const [typed, setTyped] = useState<string | null>(null);
  return (
    <>
      <input
        id={FOLDER}
        dir="auto"
        list="workspaces"
        aria-label={texts.settings.workspace}
        value={typed ?? chosen.workspace ?? ""}
        placeholder={workspace}
        spellcheck={false}
        ref={(field) => {
          if (focused && field !== null && document.activeElement !== field) field.focus();
        }}
        onInput={(event) => setTyped(event.currentTarget.value)}
        onChange={(event) => {
          setTyped(null);
          onChange({ workspace: event.currentTarget.value });
        }}
      />
      <datalist id="workspaces">
        {workspaces.map((path) => (
          <option key={path} value={path} />
        ))}
      </datalist>
    </>
  );
}

function Others({ chosen, profile, onChange }: Props) {
  const { profiles: all } = profiles.value;
  const mine = all.find((entry) => entry.name === profile) ?? all[0];
  return (
    <>
      {all.length > 1 ? (
        <Choice
          label={texts.settings.profile}
          value={profile ?? ""}
          standard={texts.settings.default}
          options={all.map(({ name }) => [name, name])}
          onChange={(chosenProfile) => onChange({ profile: chosenProfile })}
          required
        />
      ) : null}
      <Choice
        label={texts.settings.personality}
        value={chosen.personality ?? ""}
        standard={texts.settings.profileDefault}
        options={withValue(mine?.personalities ?? [], chosen.personality).map((name) => [name, name])}
        onChange={(personality) => onChange({ personality: personality || null })}
      />
      <Choice
        label={texts.settings.effort}
        value={chosen.effort ?? ""}
        standard={texts.settings.profileDefault}
        options={EFFORTS}
        onChange={(effort) => onChange({ effort: effort || null })}
      />
      <Choice
        label={texts.settings.approvals}
        value={chosen.approvals ?? ""}
        standard={texts.settings.default}
        options={APPROVALS}
        onChange={(approvals) => approvals && onChange({ approvals: approvals as ApprovalMode })}
      />
      <Toolsets chosen={chosen.tools} onChange={(tools) => onChange({ tools })} />
    </>
  );
}

function withValue(options: readonly string[], value: string | null | undefined): readonly string[] {
  return !value || options.includes(value) ? options : [value, ...options];
}

interface ChoiceProps {
  label: string;
  value: string;
  standard: string;
  options: readonly (readonly [string, string])[];
  onChange: (value: string) => void;
  onFocus?: () => void;
  required?: boolean;
}

function Choice({ label, value, standard, options, onChange, onFocus, required = false }: ChoiceProps) {
  return (
    <label>
      <span>{label}</span>
      <select value={value} onFocus={onFocus} onChange={(event) => onChange(event.currentTarget.value)}>
        {required ? null : <option value="">{standard}</option>}
        {options.map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
