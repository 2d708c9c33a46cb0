/** Which session the address names, and maybe a fact in it, or the settings, as it changes. */

import { signal } from "@preact/signals";
import { type Route, readRoute as read, readToken } from "./address";

export const route = signal<Route>(read());

export function addressOf(session: string, seq: number | null = null): string {
  return `#/s/${encodeURIComponent(session)}${seq === null ? "" : `/${seq}`}`;
}

export function go(session: string | null, seq: number | null = null): void {
  const hash = session === null ? "#/" : addressOf(session, seq);
  if (location.hash === hash) route.value = read();
  else location.hash = hash;
}

export const settingsAddress = (section: string): string => `#/settings/${section}`;

/** Where the settings were opened from. */
let beforeSettings = "#/";

export function openSettings(section: string): void {
  if (route.peek().settings === null) beforeSettings = location.hash || "#/";
  location.hash = settingsAddress(section);
}

export function leaveSettings(): void {
  location.hash = beforeSettings;
}

export function watchRoute(): void {
  window.addEventListener("hashchange", () => {
    route.value = read();
  });
}

/** The one-time token leaves the address, and with it whatever shows or keeps addresses. */
export function dropToken(): void {
  if (readToken() === null) return;
  history.replaceState(null, "", location.pathname + location.search);
  route.value = read();
}
