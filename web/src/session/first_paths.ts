/** What the first paint asks the server for, by the address of the page. */

import { ofList, ofMessages, ofSession } from "../api/addresses";
import { readRoute, readToken } from "../navigation/address";

/** Rows of the transcript that a session begins with. */
export const FIRST_PAGE = 50;

/** Whoever has a link is not logged in yet, and whoever has none most likely is. */
export function firstPaths(): string[] {
  if (readToken() !== null) return [];
  const { session } = readRoute();
  const ofThis = session === null ? [] : [ofSession(session), ofMessages(session, {}, FIRST_PAGE)];
  return [...ofThis, ofList(null, false)];
}
