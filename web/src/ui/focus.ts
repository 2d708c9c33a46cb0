/** The focus is never lost: when what had it goes away or is of no use, what was around it gets it. */

import { hasKeyboard } from "./keyboard";

let path: readonly EventTarget[] = [];

/** Where a keyboard slides in by itself, the message box is no place to go unasked. */
function fallback(): HTMLElement | null {
  return document.querySelector(hasKeyboard() ? "#message" : ".transcript-scroll");
}

/** Where one goes on after something was sent from elsewhere; a keyboard that slides in would be in the way. */
export function focusMessageBox(): void {
  if (hasKeyboard()) document.getElementById("message")?.focus({ preventScroll: true });
}

function onFocus(event: FocusEvent): void {
  path = event.composedPath();
}

function onBlur(event: FocusEvent): void {
  if (event.relatedTarget === null) requestAnimationFrame(keepFocus);
}

/** Only for what is gone: who clicks on empty paper wants the focus nowhere. */
function keepFocus(): void {
  const last = path[0];
  if (document.activeElement !== document.body || !(last instanceof Element)) return;
  if (last.isConnected && !last.matches(":disabled")) return;
  const around = path.find(
    (element) => element instanceof HTMLElement && element.isConnected && element.hasAttribute("tabindex"),
  );
  ((around as HTMLElement | undefined) ?? fallback())?.focus({ preventScroll: true });
}

export function watchFocus(): () => void {
  document.addEventListener("focusin", onFocus);
  document.addEventListener("focusout", onBlur);
  return () => {
    document.removeEventListener("focusin", onFocus);
    document.removeEventListener("focusout", onBlur);
  };
}
