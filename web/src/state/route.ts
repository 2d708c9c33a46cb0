/** Which session the address names: `#/s/ID`, and maybe a fact in it: `#/s/ID/SEQ`. */

import { signal } from "@preact/signals";

export interface Route {
  readonly session: string | null;
  readonly seq: number | null;
}

function read(): Route {
  const match = /^#\/s\/([^/]+)(?:\/(\d+))?$/.exec(location.hash);
  if (match === null) return { session: null, seq: null };
  return { session: decodeURIComponent(match[1]!), seq: match[2] === undefined ? null : Number(match[2]) };
}

export const route = signal<Route>(read());

export function go(session: string | null, seq: number | null = null): void {
  const hash = session === null ? "#/" : `#/s/${encodeURIComponent(session)}${seq === null ? "" : `/${seq}`}`;
  if (location.hash === hash) route.value = read();
  else location.hash = hash;
}

export function watchRoute(): void {
  window.addEventListener("hashchange", () => {
    route.value = read();
  });
}

/** The one-time token of the address that `keryx serve` prints; it leaves the address at once. */
export function takeToken(): string | null {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token === null) return null;
  history.replaceState(null, "", location.pathname + location.search);
  route.value = read();
  return token;
}
