/**
 * What the address says: `#/s/ID` names a session, `#/s/ID/SEQ` a fact in it, `#/settings/SECTION` a
 * section of the settings, `#/usage/PERIOD` what was used in a period, `#token=…` lets in.
 */

export interface Route {
  readonly session: string | null;
  readonly seq: number | null;
  /** The section of the settings that is open; empty: the first one; null: none. */
  readonly settings: string | null;
  /** The period whose usage is shown; empty: the usual one; null: none. */
  readonly usage: string | null;
}

const START: Route = { session: null, seq: null, settings: null, usage: null };

export function readRoute(): Route {
  const section = /^#\/settings(?:\/([a-z]*))?$/.exec(location.hash);
  if (section !== null) return { ...START, settings: section[1] ?? "" };
  const period = /^#\/usage(?:\/([a-z0-9]*))?$/.exec(location.hash);
  if (period !== null) return { ...START, usage: period[1] ?? "" };
  const match = /^#\/s\/([^/]+)(?:\/(\d+))?$/.exec(location.hash);
  if (match === null) return START;
  const seq = match[2] === undefined ? null : Number(match[2]);
  return { ...START, session: decodeURIComponent(match[1]!), seq };
}

export function readToken(): string | null {
  return new URLSearchParams(location.hash.slice(1)).get("token");
}
