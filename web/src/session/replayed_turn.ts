/** The turn that a person looks at again, moment by moment. */

import { signal } from "@preact/signals";
import type { MessageRow } from "./rows";

export interface ReplayedTurn {
  readonly sessionId: string;
  readonly turnId: string;
  /** The message that began the turn. */
  readonly message: MessageRow;
}

/** Null: none. */
export const replayed = signal<ReplayedTurn | null>(null);
