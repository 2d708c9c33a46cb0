/** The session that the page shows; null while the next one is not begun. */

import { signal } from "@preact/signals";
import type { SessionKeeper } from "./session_keeper";

export const current = signal<SessionKeeper | null>(null);
