/** What the address says: `#/s/ID` names a session, `#/s/ID/SEQ` a fact in it, `#token=…` lets in. */

export interface Route {
  readonly session: string | null;
  readonly seq: number | null;
}

export function readRoute(): Route {
  const match = /^#\/s\/([^/]+)(?:\/(\d+))?$/.exec(location.hash);
  if (match === null) return { session: null, seq: null };
  return { session: decodeURIComponent(match[1]!), seq: match[2] === undefined ? null : Number(match[2]) };
}

export function readToken(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}
