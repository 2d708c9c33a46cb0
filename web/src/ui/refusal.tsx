/** What was asked for was refused: what stands against it, and what to do. */

import type { Problem } from "../api/problem";
import { texts } from "../texts";
import { sentence } from "../texts/sentences";

export function Refusal({ problem, lead = "" }: { problem: Problem; lead?: string }) {
  const message = problem.kind === "unreachable" ? texts.unreachable : sentence(problem.message);
  return (
    <div class="refusal" role="alert">
      <p class="text-error">
        {lead} {message}
      </p>
      {problem.hint ? <p class="text-dim">{sentence(problem.hint)}</p> : null}
    </div>
  );
}
