/** The language of the page: a person's choice in this browser, or what the browser prefers. */

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const KEY = "keryx.language";

/** The language that the page is in now. */
export let language: Language = "en";

/** The locale of dates and long numbers; undefined: the browser's own, which is of the same language. */
export let locale: string | undefined;

export function setLanguage(next: Language, browser = navigator.language): void {
  language = next;
  locale = browser.startsWith(next) ? undefined : next;
}

const isLanguage = (value: string | null): value is Language => value !== null && value in LANGUAGES;

export function chosenLanguage(): Language {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    // Storage may be forbidden; then the browser's language holds.
  }
  if (isLanguage(stored)) return stored;
  const preferred = navigator.language.slice(0, 2);
  return isLanguage(preferred) ? preferred : "en";
}

/** Holds from the next load of the page on, which is now. */
export function chooseLanguage(language: Language): void {
  try {
    localStorage.setItem(KEY, language);
  } catch {
    return;
  }
  location.reload();
}
