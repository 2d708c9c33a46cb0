/** Starts the page: asks for what it will show, then reads the rest of its own code. */

import { prefetch } from "./session/prefetch";
import { loadTexts } from "./texts";
import { clockTime } from "./texts/amounts";
import { chosenLanguage } from "./texts/language";
import "./styles.css";

prefetch();
const language = chosenLanguage();
// Some modules read texts when they are loaded, so the language comes first.
if (language === "en") void import("./page");
else
  void loadTexts(language)
    .catch(() => undefined)
    .then(() => import("./page"));
// The browser's tables of dates take a frame to load, and nothing else is to do while code comes.
clockTime(0);
