/** Notifications of the browser, and the number in the tab's title, in German. */

import type * as english from "../notifications";

export const notifications: typeof english.notifications = {
  label: "Mitteilungen",
  about:
    "Keryx benachrichtigt Sie, wenn eine Sitzung auf Sie wartet oder fertig ist, während Sie in einem anderen Tab oder Fenster sind",
  blocked:
    "Ihr Browser blockiert Mitteilungen dieser Seite. Erlauben Sie sie in den Einstellungen des Browsers für diese Website.",
  waiting: (title) => `${title} wartet auf Sie`,
  done: (title) => `${title} ist fertig`,
  failed: (title) => `${title} ist fehlgeschlagen`,
  tabTitle: (count, title) => (count > 0 ? `(${count}) ${title}` : title),
};
