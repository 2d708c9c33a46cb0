/** Ways to a model: servers on this machine, or a key. The key is in its field and nowhere else. */

import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import type { FoundServer } from "../api/types";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { nameOf, OTHER, PROVIDERS } from "./providers";
import { configure, lookForServers, servers } from "./setup_state";

/** Kinds that are told by their own words, and so need no other name. */
const UNNAMED = new Set(["", "refused", "bad_request", "internal"]);

function Trouble({ problem }: { problem: Problem | null }) {
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <div class="text-error error-box" role="alert">
      {UNNAMED.has(problem.serverKind) ? null : <b>{texts.error(problem.serverKind)}</b>}
      <p>{message}</p>
      {problem.hint ? <p>{problem.hint}</p> : null}
    </div>
  );
}

export function Servers() {
  const local = servers.value;
  const { title, lead, searching, none, refresh } = texts.setup.servers;
  useEffect(() => {
    if (servers.peek() === null) void lookForServers();
  }, []);
  return (
    <section class="model-sources-card" aria-label={title}>
      <h2>{title}</h2>
      {local === null ? (
        <p class="text-dim">{searching}</p>
      ) : local.length === 0 ? (
        <p class="text-dim">{none}</p>
      ) : (
        <>
          <p class="text-dim">{lead}</p>
          <ul class="model-sources-servers">
            {local.map((server) => (
              <Server key={server.base_url} server={server} />
            ))}
          </ul>
        </>
      )}
      {local === null ? null : (
        <Button kind="quiet" onClick={() => void lookForServers()}>
          {refresh}
        </Button>
      )}
    </section>
  );
}

function Server({ server }: { server: FoundServer }) {
  const [model, setModel] = useState(server.models[0] ?? "");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const use = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      await configure({ name: server.name, base_url: server.base_url, model });
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <li>
      <span class="model-sources-who">
        <b>{server.name}</b> <small>{server.base_url}</small>
      </span>
      {server.models.length > 1 ? (
        <select
          aria-label={texts.setup.servers.modelOf(server.name)}
          value={model}
          onChange={(event) => setModel(event.currentTarget.value)}
        >
          {server.models.map((modelName) => (
            <option key={modelName}>{modelName}</option>
          ))}
        </select>
      ) : null}
      <Button kind="main" disabled={busy} onClick={() => void use()}>
        {texts.setup.servers.use(model)}
      </Button>
      <Trouble problem={problem} />
    </li>
  );
}

export function PasteKey({ onKept }: { onKept?: () => void }) {
  const key = useRef<HTMLInputElement>(null);
  const [chosen, setChosen] = useState(PROVIDERS[0]!.name);
  const [address, setAddress] = useState(PROVIDERS[0]!.address);
  const [model, setModel] = useState("");
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const { title, lead } = texts.setup.key;
  const choose = (name: string): void => {
    setChosen(name);
    setAddress(PROVIDERS.find((provider) => provider.name === name)?.address ?? "");
  };
  const submit = async (): Promise<void> => {
    const field = key.current!;
    setBusy(true);
    setProblem(null);
    try {
      await configure({
        name: nameOf(address.trim()),
        base_url: address.trim(),
        ...(field.value.trim() ? { api_key: field.value.trim() } : {}),
        ...(model.trim() ? { model: model.trim() } : {}),
      });
      field.value = "";
      onKept?.();
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <form
      class="model-sources-card"
      aria-label={title}
      autocomplete="off"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <h2>{title}</h2>
      <p class="text-dim">{lead}</p>
      <div class="fields">
        <label>
          <span>{texts.setup.key.provider}</span>
          <select value={chosen} onChange={(event) => choose(event.currentTarget.value)}>
            {PROVIDERS.map((provider) => (
              <option key={provider.name} value={provider.name}>
                {provider.title}
              </option>
            ))}
            <option value={OTHER}>{texts.setup.key.other}</option>
          </select>
        </label>
        <label>
          <span>{texts.setup.key.baseUrl}</span>
          <input
            type="url"
            required
            spellcheck={false}
            placeholder={texts.setup.key.baseUrlExample}
            value={address}
            onInput={(event) => setAddress(event.currentTarget.value)}
          />
        </label>
        <label>
          <span>{texts.setup.key.key}</span>
          <input ref={key} type="password" autocomplete="off" spellcheck={false} />
        </label>
        <label>
          <span>{texts.setup.key.model}</span>
          <input
            spellcheck={false}
            placeholder={texts.setup.key.firstModel}
            value={model}
            onInput={(event) => setModel(event.currentTarget.value)}
          />
        </label>
      </div>
      <Trouble problem={problem} />
      <Button type="submit" kind="main" disabled={busy || address.trim() === ""}>
        {busy ? texts.setup.key.testing : texts.setup.key.save}
      </Button>
    </form>
  );
}
