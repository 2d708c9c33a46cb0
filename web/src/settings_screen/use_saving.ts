/** A change under way: whether it is being saved, was saved, or was refused. */

import { useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";

export interface Saving {
  readonly state: "idle" | "saving" | "saved";
  readonly problem: Problem | null;
  /** True: it was done. */
  readonly run: (action: () => Promise<unknown>) => Promise<boolean>;
  /** Something else stands in the field now: what became of the last change is not said any more. */
  readonly clear: () => void;
}

export function useSaving(): Saving {
  const [state, setState] = useState<Saving["state"]>("idle");
  const [problem, setProblem] = useState<Problem | null>(null);
  /** The last change: what becomes of an earlier one is not said. */
  const last = useRef(0);
  const run = async (action: () => Promise<unknown>): Promise<boolean> => {
    const number = ++last.current;
    const end = (next: Saving["state"], trouble: Problem | null): void => {
      if (number !== last.current) return;
      setState(next);
      setProblem(trouble);
    };
    end("saving", null);
    try {
      const done = (await action()) !== false;
      end(done ? "saved" : "idle", null);
      return done;
    } catch (error) {
      end("idle", asProblem(error));
      return false;
    }
  };
  const clear = (): void => {
    last.current += 1;
    setState("idle");
    setProblem(null);
  };
  return { state, problem, run, clear };
}
