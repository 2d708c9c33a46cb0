/** Which panels lie over the page: the list on a narrow screen, the search. */

import { signal } from "@preact/signals";

export const listShown = signal(false);
export const searchShown = signal(false);
