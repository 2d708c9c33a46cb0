/** Which panels lie over the page: the list on a narrow screen, the search, a dialog about sessions. */

import { signal } from "@preact/signals";

export const listShown = signal(false);
export const searchShown = signal(false);

/** A dialog about sessions, and which: they are fetched when the first one is shown. */
export type SessionDialog =
  | { readonly kind: "tags" | "export" | "delete"; readonly ids: readonly string[] }
  | { readonly kind: "share"; readonly id: string }
  | { readonly kind: "import" };

export const sessionDialog = signal<SessionDialog | null>(null);
