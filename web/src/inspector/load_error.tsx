/** Why something cannot be shown here, and the way to try it again. */

import type { Problem } from "../api/problem";
import { texts } from "../texts";
import { Button } from "../ui/button";

export function LoadError({ problem, onRetry }: { problem: Problem; onRetry: () => void }) {
  return (
    <div class="error-box" role="alert">
      <p class="text-error">
        {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
      </p>
      <Button kind="quiet" onClick={onRetry}>
        {texts.retry}
      </Button>
    </div>
  );
}
