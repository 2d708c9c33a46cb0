/** Which session the address names, and maybe a fact in it, the settings or the usage, as it changes. */

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

export const usageAddress = (period: string): string => `#/usage/${period}`;

/** Where the settings or the usage were opened from. */
let beforeScreen = "#/";

function openScreen(hash: string): void {
  const { settings, usage } = route.peek();
  if (settings === null && usage === null) beforeScreen = location.hash || "#/";
  location.hash = hash;
}

export function openSettings(section: string): void {
  openScreen(settingsAddress(section));
}

export function openUsage(): void {
  openScreen(usageAddress(""));
}

export function leaveScreen(): void {
  location.hash = beforeScreen;
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
