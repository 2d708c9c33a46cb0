/** Reads the facts of a turn, page by page. */

import * as keryx from "../api/client";
import type { LoggedEvent } from "../api/types";
import type { ReplayedTurn } from "../session/replayed_turn";
import { beginIn, upToEnd } from "./moments";

const PAGE = 500;
/** A turn begins a few facts before its message is delivered. */
const BACK = 50;

/** Calls `onPage` with all facts so far, after each page. */
export async function loadFacts(
  { sessionId, turnId, message }: ReplayedTurn,
  onPage: (facts: readonly LoggedEvent[], ended: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let after = Math.max(0, message.seq - BACK);
  let facts: readonly LoggedEvent[] = [];
  for (;;) {
    const page = await keryx.facts(sessionId, after, PAGE, signal);
    const news =
      facts.length > 0
        ? page.facts
        : page.facts.slice(beginIn(page.facts, turnId) ?? page.facts.findIndex(({ seq }) => seq === message.seq));
    const part = upToEnd(news, turnId);
    facts = [...facts, ...part.facts];
    signal.throwIfAborted();
    onPage(facts, part.ended || page.next === null);
    if (part.ended || page.next === null) return;
    after = page.next;
  }
}
