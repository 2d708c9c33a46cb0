/** Light, dark, or as the system says; a person's choice is kept in this browser. */

import { computed, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "keryx.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(stored());

const DARK = "(prefers-color-scheme: dark)";
const isSystemDark = signal(typeof matchMedia === "function" && matchMedia(DARK).matches);
if (typeof matchMedia === "function") {
  matchMedia(DARK).addEventListener("change", ({ matches }) => {
    isSystemDark.value = matches;
  });
}

/** For what cannot take its colours from the page's own. */
export const isDark = computed(() => (theme.value === "system" ? isSystemDark.value : theme.value === "dark"));

export function applyTheme(): void {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function chooseTheme(next: Theme): void {
  theme.value = next;
  applyTheme();
  try {
    localStorage.setItem(KEY, next);
  } catch {
    // Storage may be forbidden; then the choice holds until the page is left.
  }
}
