/** The addresses that both the first script of the document and the page itself ask for. */

import type { PageEdge } from "./types";

export const ofSession = (id: string, rest = ""): string => `api/sessions/${encodeURIComponent(id)}${rest}`;

export function ofMessages(id: string, from: PageEdge, limit: number): string {
  const query = new URLSearchParams({ limit: String(limit) });
  for (const [edge, seq] of Object.entries(from)) query.set(edge, String(seq));
  return ofSession(id, `/messages?${query}`);
}

export function ofList(before: number | null, archived: boolean, limit = 50): string {
  const query = new URLSearchParams({ limit: String(limit), archived: String(archived) });
  if (before !== null) query.set("before", String(before));
  return `api/sessions?${query}`;
}
