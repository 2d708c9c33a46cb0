/** Summing up what was said so far, by hand. */

import * as keryx from "../api/keryx";
import { attempt } from "./app";

/** Done when the summary is there, or the person was told why not. */
export function sumUp(id: string): Promise<boolean> {
  return attempt(() => keryx.compact(id));
}
