/**
 * The page's one catalogue of texts. Every text that a person can see or hear comes from here. A language
 * is chosen before the page is drawn, and holds until it is loaded anew; all but English are chunks of
 * their own.
 */

import type { Configuration } from "./configuration";
import { english } from "./english";
import { type Language, setLanguage } from "./language";

export type Catalogue = typeof english;

export let texts: Catalogue = english;

/** Texts of screens that are loaded when they are first shown, if the page is not in English. */
export let otherLanguage: { readonly configuration: Configuration } | null = null;

/** Loads the catalogue of this language; English is there already, and is used if it cannot be loaded. */
export async function loadTexts(language: Language): Promise<void> {
  if (language === "en") return setLanguage(language);
  const { configuration, german } = await import("./german");
  texts = german;
  otherLanguage = { configuration };
  setLanguage(language);
  document.documentElement.lang = language;
}
