/** The entry of one MCP server: a program with its arguments, or an address. */

import { useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { texts } from "../texts";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { config, save } from "./config_state";
import { isSecret, isTable, parseVariables, tableAt, variableLines } from "./document";
import { useSaving } from "./use_saving";

const words = configuration.mcp;

type Table = Readonly<Record<string, unknown>>;

export function McpForm({ name, onClose }: { name: string | null; onClose: () => void }) {
  const servers = tableAt(config.value?.document, ["mcp", "servers"]);
  const before = name === null ? {} : tableAt(servers, [name]);
  const [kind, setKind] = useState(before.url === undefined ? "program" : "address");
  const saving = useSaving();
  const submit = async (data: FormData): Promise<void> => {
    const chosen = name ?? String(data.get("name")).trim();
    const write = async (): Promise<boolean> => {
      if (name === null && servers[chosen] !== undefined) throw new Problem("refused", 0, configuration.nameTaken);
      return save([{ path: ["mcp", "servers", chosen], value: entryOf(data, kind, before) }]);
    };
    if (await saving.run(write)) onClose();
  };
  return (
    <form
      class="settings-screen-form fields"
      autocomplete="off"
      aria-label={name ?? words.newServer}
      onSubmit={(event) => {
        event.preventDefault();
        void submit(new FormData(event.currentTarget));
      }}
    >
      {name === null ? (
        <label>
          <span>{configuration.name}</span>
          <input name="name" required maxLength={32} pattern="[a-zA-Z0-9][a-zA-Z0-9_\-]*" spellcheck={false} />
        </label>
      ) : null}
      <label>
        <span>{words.kind}</span>
        <select value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="program">{words.program}</option>
          <option value="address">{words.address}</option>
        </select>
      </label>
      {kind === "program" ? <ProgramFields before={before} /> : <AddressFields before={before} />}
      <label>
        <span>{words.timeout}</span>
        <input name="timeout" inputMode="decimal" placeholder="120" defaultValue={textOf(before.timeout)} />
      </label>
      <label class="fields-check">
        <input name="enabled" type="checkbox" defaultChecked={before.enabled !== false} />
        <span>{words.enabled}</span>
      </label>
      <p class="text-dim">{words.hiddenHelp}</p>
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

function ProgramFields({ before }: { before: Table }) {
  return (
    <>
      <label>
        <span>{words.command}</span>
        <input name="command" required spellcheck={false} defaultValue={textOf(before.command)} />
      </label>
      <label>
        <span>{words.args}</span>
        <textarea name="args" rows={3} spellcheck={false} defaultValue={lines(before.args)} />
      </label>
      <label>
        <span>{words.env}</span>
        <textarea name="env" rows={2} spellcheck={false} defaultValue={variables(before.env)} />
      </label>
    </>
  );
}

function AddressFields({ before }: { before: Table }) {
  return (
    <>
      <label>
        <span>{words.url}</span>
        <input name="url" required spellcheck={false} defaultValue={textOf(before.url)} />
      </label>
      <label>
        <span>{words.headers}</span>
        <textarea name="headers" rows={2} spellcheck={false} defaultValue={variables(before.headers)} />
      </label>
    </>
  );
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return isSecret(value) ? words.hidden : String(value);
}

const lines = (value: unknown): string => (Array.isArray(value) ? value.map(textOf).join("\n") : "");
const variables = (value: unknown): string => (isTable(value) ? variableLines(value, words.hidden) : "");

/** What the form says, with all that it does not show. */
function entryOf(data: FormData, kind: string, before: Table): Table {
  const { command, args, env, url, headers, timeout, enabled, ...others } = before;
  const text = (field: string): string => String(data.get(field) ?? "").trim();
  const number = Number(text("timeout"));
  const shared = {
    ...others,
    ...(text("timeout") === "" ? {} : { timeout: Number.isNaN(number) ? text("timeout") : number }),
    ...(data.get("enabled") === null ? { enabled: false } : {}),
  };
  if (kind === "address") {
    return { url: restored(text("url"), [url]), ...filled("headers", parsed(text("headers"), headers)), ...shared };
  }
  const old = Array.isArray(args) ? args : [];
  const rows = text("args")
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  return {
    command: restored(text("command"), [command]),
    ...(rows.length === 0 ? {} : { args: rows.map((line, index) => restored(line, [old[index], ...old])) }),
    ...filled("env", parsed(text("env"), env)),
    ...shared,
  };
}

/** Dots stand for a secret that stays: the one at the same place, or the first. */
function restored(text: string, old: readonly unknown[]): unknown {
  return text === words.hidden ? (old.find(isSecret) ?? text) : text;
}

function parsed(text: string, before: unknown): Table {
  const answer = parseVariables(text, isTable(before) ? before : {}, words.hidden);
  if ("wrong" in answer) throw new Problem("refused", 0, words.wrongLine(answer.wrong));
  return answer.table;
}

const filled = (name: string, table: Table): Table => (Object.keys(table).length === 0 ? {} : { [name]: table });
