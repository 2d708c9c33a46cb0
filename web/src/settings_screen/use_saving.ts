/** A change under way: whether it is being saved, was saved, or was refused. */

import { useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";

export interface Saving {
  readonly state: "idle" | "saving" | "saved";
  readonly problem: Problem | null;
  /** True: it was done. */
  readonly run: (action: () => Promise<unknown>) => Promise<boolean>;
}

export function useSaving(): Saving {
  const [state, setState] = useState<Saving["state"]>("idle");
  const [problem, setProblem] = useState<Problem | null>(null);
  const run = async (action: () => Promise<unknown>): Promise<boolean> => {
    setState("saving");
    setProblem(null);
    try {
      const done = (await action()) !== false;
      setState(done ? "saved" : "idle");
      return done;
    } catch (error) {
      setProblem(asProblem(error));
      setState("idle");
      return false;
    }
  };
  return { state, problem, run };
}
