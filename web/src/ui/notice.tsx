/** What went wrong with something that was clicked, said once, where it covers nothing. */

import { signal } from "@preact/signals";
import { whenDone } from "../api/http";
import { asProblem, type Problem } from "../api/problem";
import { texts } from "../texts";

interface Failure {
  readonly problem: Problem;
  readonly at: number;
}

const failure = signal<Failure | null>(null);

/** Does what a click asked for; a problem is shown, never thrown away. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  const began = performance.now();
  try {
    await action();
    settle("", began);
    return true;
  } catch (error) {
    failure.value = { problem: asProblem(error), at: performance.now() };
    return false;
  }
}

/** What failed was done since: it has begun after that, so it is no other part of the same click. */
function settle(operation: string, began: number): void {
  const last = failure.peek();
  if (last !== null && last.problem.operation === operation && began >= last.at) failure.value = null;
}

whenDone(settle);

/** What was said belongs to a screen that is left. */
export function dropNotice(): void {
  failure.value = null;
}

/** It stands in one place at a time: whoever draws it says whether that is here. */
export function Notice({ isHere }: { isHere: boolean }) {
  const problem = failure.value?.problem;
  if (!isHere || problem === undefined) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <div class="notice" role="alert">
      <span>{texts.problem(message, problem.hint)}</span>
      <button type="button" class="button-quiet" onClick={dropNotice}>
        {texts.dismiss}
      </button>
    </div>
  );
}
