/** Which model new sessions begin with; another is chosen with no key, since the server has it. */

import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import { models } from "../session/choices";
import { texts } from "../texts";
import { Refusal } from "../ui/refusal";
import { chooseDefault, modelProblems, offeredModels, setup } from "./setup_state";

export function DefaultModel() {
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const now = setup.value?.model ?? "";
  const all = [...new Set([...(now ? [now] : []), ...offeredModels.value, ...models.value.models])].sort();
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
    <div class="default-model">
      <label>
        <span>{texts.setup.defaultModel}</span>
        <select value={now} disabled={busy} onChange={(event) => void choose(event.currentTarget.value)}>
          {all.map((name) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <p class="text-dim">{texts.setup.defaultModelLead}</p>
      {modelProblems.value.map((why) => (
        <p key={why} class="text-error">
          {why}
        </p>
      ))}
      {problem === null ? null : <Refusal problem={problem} />}
    </div>
  );
}
