/** Summing up what was said so far, by hand. */

import * as keryx from "../api/client";
import { attempt } from "../ui/notice";

/** Done when the summary is there, or the person was told why not. */
export function compact(id: string, focus = ""): Promise<boolean> {
  return attempt(() => keryx.compact(id, focus));
}
