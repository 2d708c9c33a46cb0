/** Starts the page: asks for what it will show, then reads the rest of its own code. */

import { prefetch } from "./session/prefetch";
import { loadTexts } from "./texts";
import { chosenLanguage } from "./texts/language";
import "./styles.css";

prefetch();
/** Until then what the first script has read is unpacked, and the first drawing shows it. */
const nextTask = () => new Promise((resolve) => setTimeout(resolve));

// Some modules read texts when they are loaded, so the language comes first.
void loadTexts(chosenLanguage())
  .catch(() => undefined)
  .then(nextTask)
  .then(() => import("./page"));
