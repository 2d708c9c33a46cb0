/** Sets of tools that a person named. */

import { useState } from "preact/hooks";
import { toolkit } from "../session/choices";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { config, save } from "./config_state";
import { listAt, tableAt } from "./document";
import type { Field } from "./field_list";
import { NamedItem } from "./named_item";
import { SettingField, Suggested, suggestionsOf } from "./setting_field";
import { useSaving } from "./use_saving";

const words = configuration.toolsets;

export function ToolsetsSection() {
  const document = config.value?.document;
  const names = Object.keys(tableAt(document, ["toolsets"]));
  return (
    <section class="settings-screen-part" aria-label={words.title}>
      <h3>{words.title}</h3>
      <p class="text-dim">{words.lead}</p>
      {names.length === 0 ? <p role="status">{words.none}</p> : null}
      <ul class="settings-screen-items" aria-label={words.title}>
        {names.map((name) => (
          <NamedItem
            key={name}
            name={name}
            about={<span>{listAt(document, ["toolsets", name]).join(", ")}</span>}
            form={() => <SettingField field={membersOf(name)} />}
            onRemove={() => save([{ path: ["toolsets", name], value: undefined }])}
          />
        ))}
      </ul>
      <NewToolset names={names} />
    </section>
  );
}

function membersOf(name: string): Field {
  return {
    section: "tools",
    path: ["toolsets", name],
    kind: "list",
    label: words.members(name),
    help: words.membersHelp,
    suggestions: "tools",
  };
}

/** A set begins with one tool: an empty one is not worth a name. */
function NewToolset({ names }: { names: readonly string[] }) {
  const [name, setName] = useState("");
  const [tool, setTool] = useState("");
  const saving = useSaving();
  const exists = [...names, ...toolkit.value.toolsets].includes(name.trim());
  const add = async (): Promise<void> => {
    const edit = { path: ["toolsets", name.trim()], value: [tool.trim()] };
    if (name.trim() === "" || tool.trim() === "" || exists) return;
    if (!(await saving.run(() => save([edit])))) return;
    setName("");
    setTool("");
  };
  return (
    <>
      <form
        class="setting-field-line"
        onSubmit={(event) => {
          event.preventDefault();
          void add();
        }}
      >
        <input
          aria-label={words.newToolset}
          placeholder={words.newToolset}
          autocomplete="off"
          spellcheck={false}
          maxLength={64}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <input
          aria-label={words.firstTool}
          placeholder={words.firstTool}
          autocomplete="off"
          spellcheck={false}
          list="first-tool"
          value={tool}
          onInput={(event) => setTool(event.currentTarget.value)}
        />
        <Suggested id="first-tool" suggestions={suggestionsOf("tools")} />
        <Button type="submit" label={configuration.addTo(words.title)} busy={saving.state === "saving"}>
          {configuration.add}
        </Button>
      </form>
      {exists ? (
        <p class="text-error" role="alert">
          {configuration.nameTaken}
        </p>
      ) : null}
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
    </>
  );
}
