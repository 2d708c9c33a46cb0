/** One setting: its name, its control, what it does, its default, and what fixes it. */

import { useId, useState } from "preact/hooks";
import { models, toolkit } from "../session/choices";
import { offeredModels } from "../setup/setup_state";
import { configuration as words } from "../texts/configuration";
import { Refusal } from "../ui/refusal";
import { config, save } from "./config_state";
import { isSame, isSecret, listAt, valueAt } from "./document";
import type { Field, Suggestions } from "./field_list";
import { ListControl } from "./list_control";
import { type Saving, useSaving } from "./use_saving";

const MEMORY_PROVIDERS = ["notes", "vector", "honcho"];

export function suggestionsOf(kind: Suggestions | undefined): readonly string[] {
  if (kind === "models") return [...new Set([...models.value.models, ...offeredModels.value])];
  if (kind === "tools") return [...toolkit.value.toolsets, ...toolkit.value.tools.map(({ name }) => name)];
  return kind === "memory" ? MEMORY_PROVIDERS : [];
}

export function SettingField({ field }: { field: Field }) {
  const shown = config.value;
  const saving = useSaving();
  const id = useId();
  if (shown === null) return null;
  const fixed = shown.fixed.find(({ path }) => isSame(path, field.path));
  const standard = standardOf(field, valueAt(shown.defaults, field.path));
  const props: ControlProps = {
    id,
    field,
    standard,
    value: valueAt(shown.document, field.path),
    onChange: (value) => void saving.run(() => save([{ path: field.path, value }])),
    onRefused: saving.clear,
  };
  return (
    <div class="setting-field" data-path={field.path.join(".")}>
      <div class="setting-field-head">
        <label for={id} id={`${id}-label`}>
          {field.label}
        </label>
        <SavingState saving={saving} />
      </div>
      {fixed === undefined ? (
        <Control {...props} />
      ) : (
        <p class="setting-field-fixed">{words.setBy(fixed.by, fixed.value)}</p>
      )}
      <p class="setting-field-help" id={`${id}-help`}>
        {field.help} {field.kind === "secret" ? "" : words.default(standard)} {field.restart ? words.restart : ""}
      </p>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
    </div>
  );
}

export function SavingState({ saving }: { saving: Saving }) {
  return (
    <span class="setting-field-state" role="status">
      {saving.state === "saving" ? words.saving : saving.state === "saved" ? words.saved : ""}
    </span>
  );
}

function standardOf(field: Field, value: unknown): string {
  const choice = words.choices[field.path.join(".")]?.[String(value)];
  if (choice !== undefined) return choice;
  const isNothing = value === null || value === undefined || (Array.isArray(value) && value.length === 0);
  return isNothing ? (field.standard ?? words.none) : String(value);
}

interface ControlProps {
  id: string;
  field: Field;
  standard: string;
  value: unknown;
  onChange: (value: unknown) => void;
  /** Told when what was typed is no value, and so is not saved. */
  onRefused: () => void;
}

function Control(props: ControlProps) {
  const { id, field, standard, value, onChange } = props;
  switch (field.kind) {
    case "number":
      return <NumberControl {...props} />;
    case "secret":
      return <SecretControl {...props} />;
    case "list":
      return (
        <ListControl
          id={id}
          label={field.label}
          items={listAt({ value }, ["value"])}
          suggestions={suggestionsOf(field.suggestions)}
          standard={standard}
          ordered={field.ordered ?? false}
          onChange={(items) => onChange(items.length === 0 ? undefined : items)}
        />
      );
    case "choice":
      return (
        <select
          id={id}
          aria-describedby={`${id}-help`}
          value={typeof value === "string" ? value : ""}
          onChange={(event) => onChange(event.currentTarget.value || undefined)}
        >
          <option value="">{words.defaultChoice(standard)}</option>
          {Object.entries(words.choices[field.path.join(".")] ?? {}).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      );
    case "text":
      return <TextControl {...props} />;
  }
}

/** What is typed counts when the field is left, or with Enter; what was refused stays to be corrected. */
function NumberControl({ id, value, standard, onChange, onRefused }: ControlProps) {
  const [wrong, setWrong] = useState(false);
  const commit = (text: string): void => {
    const number = Number(text.replaceAll(/[_\s]/g, ""));
    setWrong(Number.isNaN(number));
    if (Number.isNaN(number)) onRefused();
    else onChange(text.trim() === "" ? undefined : number);
  };
  return (
    <>
      <input
        id={id}
        key={String(value)}
        inputMode="decimal"
        autocomplete="off"
        placeholder={standard}
        defaultValue={value === undefined ? "" : String(value)}
        aria-invalid={wrong || undefined}
        aria-describedby={`${id}-help`}
        onChange={(event) => commit(event.currentTarget.value)}
      />
      {wrong ? (
        <p class="text-error" role="alert">
          {words.wrongNumber}
        </p>
      ) : null}
    </>
  );
}

function TextControl({ id, field, value, standard, onChange }: ControlProps) {
  const suggestions = suggestionsOf(field.suggestions);
  return (
    <>
      <input
        id={id}
        key={String(value)}
        dir="auto"
        autocomplete="off"
        spellcheck={false}
        placeholder={standard}
        list={suggestions.length > 0 ? `${id}-list` : undefined}
        defaultValue={typeof value === "string" ? value : ""}
        aria-describedby={`${id}-help`}
        onChange={(event) => onChange(event.currentTarget.value.trim() || undefined)}
      />
      <Suggested id={`${id}-list`} suggestions={suggestions} />
    </>
  );
}

export function Suggested({ id, suggestions }: { id: string; suggestions: readonly string[] }) {
  if (suggestions.length === 0) return null;
  return (
    <datalist id={id}>
      {suggestions.map((name) => (
        <option key={name} value={name} />
      ))}
    </datalist>
  );
}

/** It is written and never shown. */
function SecretControl({ id, field, value, onChange }: ControlProps) {
  const saved = isSecret(value);
  return (
    <form class="setting-field-line" autocomplete="off" onSubmit={(event) => event.preventDefault()}>
      <input
        id={id}
        key={JSON.stringify(value ?? null)}
        type="password"
        autocomplete="off"
        spellcheck={false}
        placeholder={saved ? words.secretSaved : words.secretNone}
        aria-describedby={`${id}-help`}
        onChange={(event) => event.currentTarget.value.trim() && onChange(event.currentTarget.value.trim())}
      />
      {saved ? (
        <button
          type="button"
          class="button"
          aria-label={words.removeNamed(field.label)}
          onClick={() => onChange(undefined)}
        >
          {words.remove}
        </button>
      ) : null}
    </form>
  );
}
