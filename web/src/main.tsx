/** Starts the page: asks for what it will show, then reads the rest of its own code. */

import { prefetch } from "./session/prefetch";
import { loadTexts } from "./texts";
import { clockTime } from "./texts/amounts";
import { chosenLanguage } from "./texts/language";
import "./styles.css";

prefetch();
void loadTexts(chosenLanguage())
  .catch(() => undefined)
  .then(() => {
    // Some modules read texts when they are loaded, so the language comes first.
    void import("./page");
    // The browser's tables of dates take a frame to load, and nothing else is to do while code comes.
    clockTime(0);
  });
