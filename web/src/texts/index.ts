/**
 * The page's one catalogue of texts. Every text that a person can see or hear comes from here. A language
 * is chosen before the page is drawn, and holds until it is loaded anew; all but English are chunks of
 * their own.
 */

import { english } from "./english";
import { type Language, setLanguage } from "./language";

export type Catalogue = typeof english;

export let texts: Catalogue = english;

/** Loads the catalogue of this language; English is there already, and is used if it cannot be loaded. */
export async function loadTexts(language: Language): Promise<void> {
  if (language === "en") return setLanguage(language);
  const { german } = await import("./german");
  texts = german;
  setLanguage(language);
  document.documentElement.lang = language;
}
