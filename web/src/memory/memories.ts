/** What the view of the memory shows, as the server has it; asked again after each change. */

import { useEffect, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { MemoryStatus, RememberedItem } from "../api/types";

const ASK_AFTER_MS = 180;
/** How far providers are changes by itself. */
const REFRESH_MS = 5_000;

export interface Memories {
  readonly status: MemoryStatus | null;
  readonly items: readonly RememberedItem[] | null;
  readonly hasMore: boolean;
  readonly problem: Problem | null;
  readonly more: () => void;
  /** Does it, then asks again; true if it was done. */
  readonly change: (work: () => Promise<unknown>) => Promise<boolean>;
}

export function useMemories(words: string): Memories {
  const [version, setVersion] = useState(0);
  const [items, setItems] = useState<readonly RememberedItem[] | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const status = useStatus(version, setProblem);
  const on = status?.on ?? false;
  useEffect(() => {
    if (!on) return;
    const abort = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        const page = await keryx.memories(words, null, abort.signal);
        if (abort.signal.aborted) return;
        setItems(page.memories);
        setNext(page.next);
      } catch (error) {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      }
    };
    const timer = setTimeout(() => void ask(), words === "" ? 0 : ASK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [on, words, version]);
  const more = async (): Promise<void> => {
    try {
      const page = await keryx.memories(words, next);
      setItems((shown) => [...(shown ?? []), ...page.memories]);
      setNext(page.next);
    } catch (error) {
      setProblem(asProblem(error));
    }
  };
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    let done = true;
    try {
      await work();
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
      done = false;
    }
    setVersion((count) => count + 1);
    return done;
  };
  return { status, items, hasMore: next !== null, problem, more: () => void more(), change };
}

function useStatus(version: number, onProblem: (problem: Problem) => void): MemoryStatus | null {
  const [status, setStatus] = useState<MemoryStatus | null>(null);
  useEffect(() => {
    let mounted = true;
    const ask = (): void => {
      keryx.memoryStatus().then(
        (answer) => mounted && setStatus(answer),
        (error: unknown) => mounted && onProblem(asProblem(error)),
      );
    };
    ask();
    const timer = setInterval(ask, REFRESH_MS);
    return () => {
      mounted = false;
      clearInterval(timer);
    };
  }, [version]);
  return status;
}
