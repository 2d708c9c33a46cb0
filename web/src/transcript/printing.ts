/**
 * The transcript on paper: all of its rows, not only those in view. Ctrl+P loads the earlier ones
 * first. A browser that prints by its own menu waits for nothing: it gets those that are loaded, and a
 * line that says how to print the others.
 */

import { useEffect } from "preact/hooks";
import type { SessionStore } from "../session/session_store";
import { attempt } from "../ui/notice";
import type { Scroller } from "./scroller";

/** Pages of the history that are loaded to be printed; a line says if there is more. */
const MOST_PAGES = 6;
/** Paper with less on it is better than none. */
const LONGEST_MS = 3_000;
const PAUSE_MS = 30;

export function usePrinting(session: SessionStore, scroller: Scroller): void {
  useEffect(() => {
    const whole = (): void => scroller.showAll(true);
    const inView = (): void => scroller.showAll(false);
    const onKey = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== "p" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey)
        return;
      event.preventDefault();
      void printAll(session, scroller);
    };
    window.addEventListener("beforeprint", whole);
    window.addEventListener("afterprint", inView);
    document.addEventListener("keydown", onKey);
    return () => {
      window.removeEventListener("beforeprint", whole);
      window.removeEventListener("afterprint", inView);
      document.removeEventListener("keydown", onKey);
    };
  }, [session, scroller]);
}

async function printAll(session: SessionStore, scroller: Scroller): Promise<void> {
  await attempt(async () => {
    for (let page = 0; page < MOST_PAGES && session.head.older.peek() !== null; page++) await session.loadOlder();
  });
  scroller.showAll(true);
  // Until they are drawn; what is coloured or drawn later than that is printed as it is then.
  const latest = Date.now() + LONGEST_MS;
  do await pause();
  while (!scroller.isDrawn && Date.now() < latest);
  window.print();
}

/** Not until the next frame: a window that is covered draws none. */
function pause(): Promise<unknown> {
  return new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
