/**
 * Getting in by the link that `keryx serve` prints. It works for one browser: the one that shows
 * the same secret again, should the answer to its first try get lost with the page.
 */

import { newKey } from "../api/ids";
import { ownName } from "../api/own_name";

const KEY = ownName("keryx.entering");

let own: string | null = null;

/** This browser's, the same for every page in it until it is in. */
export function ownSecret(): string {
  own ??= stored() ?? newKey() + newKey();
  try {
    localStorage.setItem(KEY, own);
  } catch {
    // Storage may be forbidden; then a page that is loaded anew is another browser.
  }
  return own;
}

export function forgetSecret(): void {
  own = null;
  try {
    localStorage.removeItem(KEY);
  } catch {
    // Then it was not kept.
  }
}

function stored(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}
