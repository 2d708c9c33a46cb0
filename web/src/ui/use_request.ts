/** Something that is asked of the server and shown when it comes; asked anew when it may be another. */

import { useEffect, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";

export interface Answer<T> {
  readonly value: T | null;
  readonly problem: Problem | null;
  readonly again: () => void;
}

/** What was there before stays until the new answer comes, so that nothing flickers. */
export function useRequest<T>(ask: (signal: AbortSignal) => Promise<T>, reasons: readonly unknown[]): Answer<T> {
  const [value, setValue] = useState<T | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [times, setTimes] = useState(0);
  useEffect(() => {
    const abort = new AbortController();
    ask(abort.signal).then(
      (answer) => {
        if (abort.signal.aborted) return;
        setValue(answer);
        setProblem(null);
      },
      (error: unknown) => {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      },
    );
    return () => abort.abort();
  }, [...reasons, times]);
  return { value, problem, again: () => setTimes((count) => count + 1) };
}
