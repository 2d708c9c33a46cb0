/** Which model new sessions begin with; another is chosen with no key, since the server has it. */

import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { Refusal } from "../parts/refusal";
import { models } from "../state/app";
import { texts } from "../texts";
import { chooseDefault, found, setup, silent } from "./steps";

export function DefaultModel() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const now = setup.value?.model ?? "";
  const all = [...new Set([...(now ? [now] : []), ...found.value, ...models.value.models])].sort();
  const choose = async (model: string): Promise<void> => {
    setBusy(true);
    try {
      await chooseDefault(model);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <div class="defaultmodel">
      <label>
        <span>{texts.setup.defaultModel}</span>
        <select value={now} disabled={busy} onChange={(event) => void choose(event.currentTarget.value)}>
          {all.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <p class="dim">{texts.setup.defaultModelLead}</p>
      {silent.value.map((why) => (
        <p key={why} class="failure">
          {why}
        </p>
      ))}
      {problem === null ? null : <Refusal problem={problem} />}
    </div>
  );
}
