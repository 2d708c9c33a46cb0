/**
 * What the first paint needs, asked for while the page itself is still being read.
 *
 * Each answer is for the first who wants it; whoever comes later asks anew.
 */

import * as keryx from "../api/client";
import type { MessagePage, SessionPage, View } from "../api/types";
import { readRoute, readToken } from "../navigation/address";
import { FIRST_PAGE } from "./first_paths";

/** A session as it is opened: all that the view stands for is in the page, as far back as it goes. */
export interface SessionBeginning {
  readonly view: View;
  readonly page: MessagePage;
}

let list: Promise<SessionPage> | null = null;
let session: {
  readonly id: string;
  readonly beginning: Promise<SessionBeginning>;
  /** The same, once it has come. */
  ready: SessionBeginning | null;
} | null = null;

/** Whoever has no link is most likely logged in. */
export function prefetch(): void {
  if (readToken() !== null) return;
  const { session: id } = readRoute();
  if (id !== null) {
    const prefetched = { id, beginning: withoutRejection(loadBeginning(id)), ready: null as SessionBeginning | null };
    void prefetched.beginning.then((ready) => (prefetched.ready = ready)).catch(() => undefined);
    session = prefetched;
  }
  list = withoutRejection(keryx.listSessions(null, false));
}

export function firstSessions(): Promise<SessionPage> {
  const answer = list ?? keryx.listSessions(null, false);
  list = null;
  return answer;
}

/** What has come by now, so that it can be drawn at once; null if there is nothing to draw yet. */
export function readyBeginning(id: string): SessionBeginning | null {
  if (session?.id !== id || session.ready === null) return null;
  const { ready } = session;
  session = null;
  return ready;
}

export async function beginningOf(id: string, signal: AbortSignal): Promise<SessionBeginning> {
  const answer = session?.id === id ? session.beginning : loadBeginning(id, signal);
  session = null;
  const beginning = await answer;
  signal.throwIfAborted();
  return beginning;
}

async function loadBeginning(id: string, signal?: AbortSignal): Promise<SessionBeginning> {
  const [view, page] = await Promise.all([keryx.view(id, signal), keryx.messages(id, {}, FIRST_PAGE, signal)]);
  // What the page has beyond the view comes again as events; what it lacks would never come.
  if (page.seq !== undefined && page.seq >= view.seq) return { view, page };
  return { view, page: await keryx.messages(id, {}, FIRST_PAGE, signal) };
}

/** A refusal is for whoever takes the answer; until then it is nobody's. */
function withoutRejection<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}
