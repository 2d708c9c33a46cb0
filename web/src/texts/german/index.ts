/** The catalogue in German. */

import type { Catalogue } from "..";
import { english } from "../english";

export const german: Catalogue = { ...english };
