/**
 * The first script of the page. It is part of the document itself, so it asks for what will be shown
 * while the page's code is still on its way (`vite.config.ts` puts it there, and the server's policy
 * allows it by its hash).
 */

import { sendEarly } from "./api/early_requests";
import { firstPaths } from "./session/first_paths";
import { chosenLanguage } from "./texts/language";

sendEarly(firstPaths());
// The first look into the storage waits for another process: better now than before the first drawing.
chosenLanguage();
