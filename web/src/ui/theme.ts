/** Light, dark, or as the system says; a person's choice is kept in this browser. */

import { signal } from "@preact/signals";

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
