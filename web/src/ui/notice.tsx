/** What went wrong with something that was clicked, said once at the bottom of the page. */

import { signal } from "@preact/signals";
import { asProblem, type Problem } from "../api/problem";
import { texts } from "../texts";

const notice = signal<Problem | null>(null);

/** Does what a click asked for; a problem is shown, never thrown away. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    notice.value = asProblem(error);
    return false;
  }
}

export function Notice() {
  const problem = notice.value;
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <div class="notice" role="alert">
      <span>{texts.problem(message, problem.hint)}</span>
      <button type="button" class="button-quiet" onClick={() => (notice.value = null)}>
        {texts.dismiss}
      </button>
    </div>
  );
}
