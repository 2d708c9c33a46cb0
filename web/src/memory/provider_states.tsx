/** How far each provider of the memory is, with a warning if one is stuck, and what failed there. */

import * as keryx from "../api/client";
import type { FailureShown, MemoryStatus, ProviderShown } from "../api/types";
import { texts } from "../texts";
import { elapsed, shortTime } from "../texts/amounts";
import { Button } from "../ui/button";
import type { Memories } from "./memories";

const words = texts.memory;

interface Props {
  status: MemoryStatus;
  onChange: Memories["change"];
}

export function ProviderStates({ status, onChange }: Props) {
  const providers = status.providers ?? [];
  const leftOut = providers.map((provider) => provider.left_out).filter((reason) => reason !== null);
  const stuck = providers.filter(
    (provider) => provider.stuck && provider.behind !== null && provider.left_out === null,
  );
  return (
    <section aria-label={words.providers}>
      <h3>{words.providers}</h3>
      {leftOut.map((reason) => (
        <p key={reason} class="provider-states-warning" role="alert">
          {reason}
        </p>
      ))}
      {stuck.length === 0 ? null : (
        <p class="provider-states-warning" role="alert">
          {stuck.map(({ name, behind }) => words.stuck(name, elapsed(behind ?? 0))).join(" ")}
        </p>
      )}
      <ul class="provider-states">
        {providers.map((provider) => (
          <li key={provider.name}>
            <b>{provider.name}</b>
            <span>{stateOf(provider)}</span>
            {provider.failures === 0 || provider.left_out !== null ? null : (
              <Button onClick={() => void onChange(() => keryx.retryMemory([]))}>{words.retryAll}</Button>
            )}
          </li>
        ))}
      </ul>
      <Failures failures={status.failures ?? []} onChange={onChange} />
    </section>
  );
}

function stateOf(provider: ProviderShown): string {
  const { waiting, behind, failures, error, refused, unknown, left_out } = provider;
  const parts = [
    left_out === null ? "" : words.state.leftOut,
    behind === null ? "" : words.state.waiting(waiting, elapsed(behind)),
    failures === 0 || left_out !== null ? "" : words.state.failing(failures, error),
    refused === 0 ? "" : words.state.refused(refused),
    unknown === 0 ? "" : words.state.unknown(unknown),
  ].filter(Boolean);
  return parts.join(" · ") || words.state.upToDate;
}

function Failures({ failures, onChange }: { failures: readonly FailureShown[]; onChange: Memories["change"] }) {
  if (failures.length === 0) return null;
  return (
    <>
      <h3>{words.failures}</h3>
      <ul class="provider-states" aria-label={words.failures}>
        {failures.map(({ place, provider, state, text, error, since }) => (
          <li key={place}>
            <span>
              <span dir="auto">{text}</span>
              <small>
                {words.failure[state]} · {provider} · {shortTime(since)} · {error}
              </small>
            </span>
            <Button label={words.retryItem(text)} onClick={() => void onChange(() => keryx.retryMemory([place]))}>
              {texts.retry}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}
