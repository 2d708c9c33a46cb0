/** How long a text may be that is sent: said before anything is sent. */

import { Problem } from "../api/problem";
import { texts } from "../texts";

/** Characters of a message; the server takes no more. */
export const LONGEST_MESSAGE = 1_000_000;

/** What stands against this text, or null. The hint says what can be done about it where it was typed. */
export function tooLongProblem(text: string, hint: string): Problem | null {
  // No text has more characters than units, and to count them takes a while.
  const length = text.length <= LONGEST_MESSAGE ? text.length : [...text].length;
  if (length <= LONGEST_MESSAGE) return null;
  return new Problem("too_long", 0, texts.composer.tooLong(length, LONGEST_MESSAGE), hint);
}
