/** Whether the list of what was allowed for always is open. */

import { signal } from "@preact/signals";

export const rulesShown = signal(false);
