/** Profiles with their models and tools, and personalities with their texts. */

import { texts } from "../texts";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { config, save } from "./config_state";
import { isTable, tableAt, valueAt } from "./document";
import type { Field } from "./field_list";
import { NamedItem } from "./named_item";
import { NewName } from "./new_name";
import { SettingField } from "./setting_field";
import { useSaving } from "./use_saving";

const words = configuration.profiles;
const DEFAULT = "default";
const FRONT_ENDS = ["web", "cli", "gateway", "program"] as const;

export function ProfilesSection() {
  const document = config.value?.document;
  const profiles = Object.keys(tableAt(document, ["profiles"])).filter((name) => name !== DEFAULT);
  const personalities = Object.keys(tableAt(document, ["personalities"]));
  return (
    <>
      <section class="settings-screen-part" aria-label={words.profiles}>
        <h3>{words.profiles}</h3>
        <p class="text-dim">{words.defaultProfile}</p>
        {profiles.length === 0 ? <p role="status">{words.noProfiles}</p> : null}
        <ul class="settings-screen-items" aria-label={words.profiles}>
          {profiles.map((name) => (
            <NamedItem
              key={name}
              name={name}
              about={<span>{textAt(["profiles", name, "model"])}</span>}
              form={() => fieldsOf(name).map((field) => <SettingField key={field.path.join(".")} field={field} />)}
              onRemove={() => save([{ path: ["profiles", name], value: undefined }])}
            />
          ))}
        </ul>
        <NewName
          label={words.newProfile}
          names={[DEFAULT, ...profiles]}
          onAdd={(name) => save([{ path: ["profiles", name], value: {} }])}
        />
      </section>
      <section class="settings-screen-part" aria-label={words.personalities}>
        <h3>{words.personalities}</h3>
        {personalities.length === 0 ? <p role="status">{words.noPersonalities}</p> : null}
        <ul class="settings-screen-items" aria-label={words.personalities}>
          {personalities.map((name) => (
            <NamedItem
              key={name}
              name={name}
              about={<span>{promptOf(valueAt(document, ["personalities", name]))}</span>}
              form={(close) => <PersonalityForm name={name} onClose={close} />}
              onRemove={() => save([{ path: ["personalities", name], value: undefined }])}
            />
          ))}
        </ul>
        <NewName
          label={words.newPersonality}
          names={personalities}
          onAdd={(name) => save([{ path: ["personalities", name], value: "" }])}
        />
      </section>
    </>
  );
}

function fieldsOf(profile: string): readonly Field[] {
  const { fields } = configuration;
  return [
    {
      section: "profiles",
      path: ["profiles", profile, "model"],
      kind: "text",
      label: words.model,
      help: words.modelHelp,
      standard: texts.settings.default,
      suggestions: "models",
    },
    ...FRONT_ENDS.map((frontEnd): Field => {
      const { label, help } = fields[`profiles.default.toolsets.${frontEnd}`];
      const path = ["profiles", profile, "toolsets", frontEnd];
      return { section: "profiles", path, kind: "list", label, help, standard: DEFAULT, suggestions: "tools" };
    }),
  ];
}

function textAt(path: readonly string[]): string {
  const value = valueAt(config.value?.document, path);
  return typeof value === "string" ? value : "";
}

function promptOf(value: unknown): string {
  if (!isTable(value)) return String(value ?? "");
  return String(value.system_prompt ?? value.prompt ?? "");
}

function PersonalityForm({ name, onClose }: { name: string; onClose: () => void }) {
  const saving = useSaving();
  const path = ["personalities", name];
  const value = valueAt(config.value?.document, path);
  const part = (key: string): string => (isTable(value) ? String(value[key] ?? "") : "");
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const text = (key: string): string => String(data.get(key)).trim();
    const [tone, style] = [text("tone"), text("style")];
    const table = {
      system_prompt: text("prompt"),
      ...(tone === "" ? {} : { tone }),
      ...(style === "" ? {} : { style }),
    };
    const isPlain = tone === "" && style === "" && !isTable(value);
    if (await saving.run(() => save([{ path, value: isPlain ? table.system_prompt : table }]))) onClose();
  };
  return (
    <form
      class="settings-screen-form fields"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <label>
        <span>{words.prompt}</span>
        <textarea name="prompt" dir="auto" rows={4} defaultValue={promptOf(value)} />
      </label>
      <label>
        <span>{words.tone}</span>
        <input name="tone" dir="auto" defaultValue={part("tone")} />
      </label>
      <label>
        <span>{words.style}</span>
        <input name="style" dir="auto" defaultValue={part("style")} />
      </label>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
      <div class="layout-buttons">
        <Button type="submit" kind="main" busy={saving.state === "saving"}>
          {texts.save}
        </Button>
        <Button onClick={onClose}>{texts.cancel}</Button>
      </div>
    </form>
  );
}
