/** The one list of sessions that the page has. */

import { Sessions } from "./session_list_store";

export const sessions = new Sessions();
