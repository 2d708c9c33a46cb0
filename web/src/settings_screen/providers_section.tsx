/** The providers: where each is configured, a test of its key, another key, and new ones. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { ProviderEntry } from "../api/types";
import { LocalModelCard } from "../setup/local_model_card";
import { PasteKey, Servers } from "../setup/model_sources";
import { readyModel } from "../setup/setup_state";
import { texts } from "../texts";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { loadConfig, refreshOthers } from "./config_state";
import { NamedItem } from "./named_item";
import { useSaving } from "./use_saving";

const words = configuration.providers;

export function ProvidersSection() {
  const answer = useRequest(() => keryx.providers(), [readyModel.value]);
  const onChange = (): void => {
    answer.again();
    void loadConfig();
    void refreshOthers();
  };
  if (answer.value === null) {
    return answer.problem === null ? <p class="text-dim">{texts.loading}</p> : <Refusal problem={answer.problem} />;
  }
  const { providers } = answer.value;
  return (
    <>
      {providers.length === 0 ? <p role="status">{words.none}</p> : null}
      <ul class="settings-screen-items" aria-label={words.list}>
        {providers.map((provider) => (
          <Provider key={provider.name} provider={provider} onChange={onChange} />
        ))}
      </ul>
      <details class="settings-screen-part" open={providers.length === 0}>
        <summary>{words.addTitle}</summary>
        <div class="model-sources">
          <LocalModelCard onChosen={onChange} />
          <Servers />
          <PasteKey onKept={onChange} />
        </div>
      </details>
    </>
  );
}

function Provider({ provider, onChange }: { provider: ProviderEntry; onChange: () => void }) {
  const testing = useSaving();
  const [model, setModel] = useState<string | null>(null);
  const { name } = provider;
  const test = async (): Promise<void> => {
    setModel(null);
    setModel((await keryx.testProvider(name)).model);
  };
  const removal = async (): Promise<void> => {
    await keryx.removeProvider(name);
    onChange();
  };
  const isOurs = provider.source !== "environment";
  return (
    <NamedItem
      name={name}
      about={
        <>
          <span>{provider.base_url}</span>
          <span>
            {isOurs || provider.variable === null
              ? `${words.sources[provider.source]} · ${keyState(provider)}`
              : words.setBy(provider.variable)}
          </span>
          <span role="status">{model === null ? "" : words.works(model)}</span>
          {testing.problem === null ? null : <Refusal problem={testing.problem} />}
        </>
      }
      buttons={
        <Button label={words.testNamed(name)} busy={testing.state === "saving"} onClick={() => void testing.run(test)}>
          {testing.state === "saving" ? words.testing : words.test}
        </Button>
      }
      {...(isOurs
        ? {
            form: (close: () => void) => <ProviderForm provider={provider} onClose={close} onChange={onChange} />,
            onRemove: removal,
          }
        : {})}
    />
  );
}

function keyState({ has_key, variable }: ProviderEntry): string {
  if (variable !== null) return has_key ? words.variable(variable) : words.variableMissing(variable);
  return has_key ? words.keySaved : words.noKey;
}

interface FormProps {
  provider: ProviderEntry;
  onClose: () => void;
  onChange: () => void;
}

/** The key is in its field and nowhere else. */
function ProviderForm({ provider, onClose, onChange }: FormProps) {
  const saving = useSaving();
  const submit = async (form: HTMLFormElement): Promise<void> => {
    const data = new FormData(form);
    const [url, key] = [String(data.get("url")).trim(), String(data.get("key")).trim()];
    const change = { ...(url === provider.base_url ? {} : { base_url: url }), ...(key ? { api_key: key } : {}) };
    if (await saving.run(() => keryx.changeProvider(provider.name, change))) {
      onClose();
      onChange();
    }
  };
  return (
    <form
      class="settings-screen-form fields"
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void submit(event.currentTarget);
      }}
    >
      <label>
        <span>{words.baseUrl}</span>
        <input name="url" type="url" required spellcheck={false} defaultValue={provider.base_url} />
      </label>
      <label>
        <span>{words.newKey}</span>
        <input name="key" type="password" autocomplete="off" spellcheck={false} placeholder={words.unchanged} />
      </label>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
      <div class="layout-buttons">
        <Button type="submit" kind="main" busy={saving.state === "saving"}>
          {saving.state === "saving" ? words.testing : words.save}
        </Button>
        <Button onClick={onClose}>{texts.cancel}</Button>
      </div>
    </form>
  );
}
