/** The MCP servers and how each is doing; added, edited, removed and connected here. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { ServerState } from "../api/types";
import { texts } from "../texts";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { config, save } from "./config_state";
import { tableAt } from "./document";
import { McpForm } from "./mcp_form";
import { NamedItem } from "./named_item";
import { useSaving } from "./use_saving";

const words = configuration.mcp;

export function McpSection() {
  const [adding, setAdding] = useState(false);
  // Asked anew when the file has changed.
  const { value, problem, again } = useRequest(() => keryx.mcpServers(), [config.value?.revision]);
  return (
    <>
      {problem === null ? null : <Refusal problem={problem} />}
      {value === null && problem === null ? <p class="text-dim">{texts.loading}</p> : null}
      {value?.servers.length === 0 ? <p role="status">{words.none}</p> : null}
      <ul class="settings-screen-items" aria-label={words.list}>
        {value?.servers.map((server) => (
          <Server key={server.name} server={server} onChange={again} />
        ))}
      </ul>
      <ul class="settings-screen-problems">
        {value?.problems.map((text) => (
          <li key={text} class="text-error">
            {text}
          </li>
        ))}
      </ul>
      <div class="settings-screen-part">
        {adding ? (
          <McpForm name={null} onClose={() => setAdding(false)} />
        ) : (
          <Button onClick={() => setAdding(true)}>{words.newServer}</Button>
        )}
      </div>
    </>
  );
}

function Server({ server, onChange }: { server: ServerState; onChange: () => void }) {
  const connecting = useSaving();
  const { name, state } = server;
  const isHere = tableAt(config.value?.document, ["mcp", "servers"])[name] !== undefined;
  const connect = async (): Promise<void> => {
    await keryx.connectServer(name);
    onChange();
  };
  return (
    <NamedItem
      name={name}
      about={
        <>
          <span class={`settings-screen-server is-${state}`}>
            {words.states[state]}
            {server.tools ? ` · ${words.tools(server.tools)}` : ""}
          </span>
          {server.fault ? <span class="text-error">{server.fault}</span> : null}
          {server.retry_in ? <span>{words.retry(Math.ceil(server.retry_in))}</span> : null}
          {isHere ? null : <span>{words.inFile}</span>}
          {server.login ? (
            <a href={server.login} target="_blank" rel="noreferrer">
              {words.signIn}
            </a>
          ) : null}
          {(server.problems ?? []).map((text) => (
            <span key={text} class="text-error">
              {text}
            </span>
          ))}
          {connecting.problem === null ? null : <Refusal problem={connecting.problem} />}
        </>
      }
      buttons={
        ["off", "connected", "unknown"].includes(state) ? null : (
          <Button
            label={words.connectNamed(name)}
            busy={connecting.state === "saving"}
            onClick={() => void connecting.run(connect)}
          >
            {connecting.state === "saving" ? words.states.connecting : words.connect}
          </Button>
        )
      }
      {...(isHere
        ? {
            form: (close: () => void) => <McpForm name={name} onClose={close} />,
            onRemove: () => save([{ path: ["mcp", "servers", name], value: undefined }]),
          }
        : {})}
    />
  );
}
