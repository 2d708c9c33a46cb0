/**
 * The keys 1 to 4 answer an approval while the focus is in no field for text. A card takes the focus from an
 * empty message box once nobody types there; what is typed next, other than an answer, goes into the box.
 */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { focusMessageBox } from "../ui/focus";
import { hasKeyboard } from "../ui/keyboard";

/** How long nobody has typed before a card takes the focus. */
const QUIET_MS = 700;
/** A key this soon after that was meant for the message box. */
const MEANT_FOR_BOX_MS = 500;
const FIELDS = "input, textarea, select, dialog, [contenteditable]";
const CARD = "[data-approval]";

type Section = RefObject<HTMLElement | null>;

/** The card that took the focus by itself, for as long as keys are still meant for the message box. */
let fresh: Element | null = null;

/** The card that the keys answer: the one with the focus, or else the first. Null while one types. */
function answeredCard(section: HTMLElement): HTMLElement | null {
  const active = document.activeElement;
  if (active?.closest(FIELDS) || (fresh !== null && active === fresh)) return null;
  const card = active?.closest<HTMLElement>(".requests-card") ?? section.querySelector<HTMLElement>(CARD);
  return card?.matches(CARD) ? card : null;
}

const isChord = (event: KeyboardEvent): boolean =>
  (event.ctrlKey || event.altKey || event.metaKey) && !event.getModifierState("AltGraph");

function answer(section: HTMLElement, event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.repeat || isChord(event) || !/^[1-4]$/.test(event.key)) return false;
  const button = answeredCard(section)?.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts="${event.key}"]`);
  if (!button) return false;
  event.preventDefault();
  button.click();
  return true;
}

/** Whether the key writes something, also as the beginning of a letter or by pasting. */
function isTyping(event: KeyboardEvent): boolean {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "v") return true;
  if (isChord(event) || event.key === " ") return false;
  return event.key.length === 1 || event.key === "Dead" || event.isComposing;
}

/** What is typed at a card and answers nothing goes into the message box, which gets this very key. */
export function typeIntoBox(section: HTMLElement, event: KeyboardEvent): void {
  if (event.defaultPrevented || !isTyping(event) || (event.target as Element).closest(FIELDS)) return;
  if (answer(section, event)) return;
  event.stopPropagation();
  focusMessageBox();
}

/** Whether the focus is where nobody would miss it. */
const isFocusFree = (): boolean => document.activeElement === document.body || document.activeElement?.id === "message";

/** The card has the focus, and keys a moment later: `onReady` is told then. */
function takeFocus(card: HTMLElement, onReady: () => void): ReturnType<typeof setTimeout> {
  fresh = card;
  card.focus({ preventScroll: true });
  return setTimeout(() => {
    fresh = null;
    onReady();
  }, MEANT_FOR_BOX_MS);
}

/**
 * Gives the first card the focus when it appears: at once if the card before it had it, else once nobody
 * types, if the message box is empty then. Tried once, so that the box is left to whoever goes back to it.
 */
function useFocus(section: Section, first: string | undefined, isDraftEmpty: () => boolean, onReady: () => void): void {
  const wasInside = useRef(false);
  useEffect(() => {
    const look = (): void => {
      wasInside.current = section.current?.contains(document.activeElement) ?? false;
    };
    document.addEventListener("focusin", look);
    return () => document.removeEventListener("focusin", look);
  }, []);
  useLayoutEffect(() => {
    const card = section.current?.querySelector<HTMLElement>(CARD) ?? null;
    if (first === undefined || card === null || !hasKeyboard()) return;
    let timer: ReturnType<typeof setTimeout>;
    const wait = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        stopWaiting();
        if (isDraftEmpty() && isFocusFree()) timer = takeFocus(card, onReady);
      }, QUIET_MS);
    };
    const stopWaiting = (): void => {
      for (const kind of ["keydown", "input"]) document.removeEventListener(kind, wait, true);
    };
    if (wasInside.current && document.activeElement === document.body) timer = takeFocus(card, onReady);
    else {
      for (const kind of ["keydown", "input"]) document.addEventListener(kind, wait, true);
      wait();
    }
    return () => {
      fresh = null;
      clearTimeout(timer);
      stopWaiting();
    };
  }, [first]);
}

/** The id of the approval that the keys answer now, or null; `first` is the one that waits longest. */
export function useAnswerKeys(section: Section, first: string | undefined, isDraftEmpty: () => boolean): string | null {
  const [answered, setAnswered] = useState<string | null>(null);
  const look = (): void => {
    setAnswered(section.current === null ? null : (answeredCard(section.current)?.dataset.approval ?? null));
  };
  useFocus(section, first, isDraftEmpty, look);
  useEffect(() => {
    look();
    if (first === undefined) return;
    // Between losing the focus and getting it, nothing has it.
    const later = (): void => void requestAnimationFrame(look);
    const onKey = (event: KeyboardEvent): void => void answer(section.current!, event);
    document.addEventListener("focusin", look);
    document.addEventListener("focusout", later);
    document.addEventListener("keydown", onKey);
    return () => {
      document.removeEventListener("focusin", look);
      document.removeEventListener("focusout", later);
      document.removeEventListener("keydown", onKey);
    };
  }, [first]);
  return answered;
}
