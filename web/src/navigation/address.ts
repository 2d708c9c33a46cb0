/**
 * What the address says: `#/s/ID` names a session, `#/s/ID/SEQ` a fact in it, `#/settings/SECTION` a
 * section of the settings, `#token=…` lets in.
 */

export interface Route {
  readonly session: string | null;
  readonly seq: number | null;
  /** The section of the settings that is open; empty: the first one; null: none. */
  readonly settings: string | null;
}

export function readRoute(): Route {
  const section = /^#\/settings(?:\/([a-z]*))?$/.exec(location.hash);
  if (section !== null) return { session: null, seq: null, settings: section[1] ?? "" };
  const match = /^#\/s\/([^/]+)(?:\/(\d+))?$/.exec(location.hash);
  if (match === null) return { session: null, seq: null, settings: null };
  const seq = match[2] === undefined ? null : Number(match[2]);
  return { session: decodeURIComponent(match[1]!), seq, settings: null };
}

export function readToken(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}
