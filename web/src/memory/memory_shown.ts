/** Whether the view of the memory is open. */

import { signal } from "@preact/signals";

export const memoryShown = signal(false);
