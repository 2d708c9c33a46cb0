/** Starts all that goes on by itself, and shows the session that the address names. */

import { effect, untracked } from "@preact/signals";
import { watchPresence } from "./api/tab_presence";
import { dropComposer, leaveComposer, saveAllDrafts } from "./composer/composers";
import { enter, enterByLink, login, watchLogin } from "./login/login_state";
import { readToken } from "./navigation/address";
import { go, route, watchRoute } from "./navigation/route";
import { watchSessions } from "./notifications/notifications";
import { current } from "./session/current_session";
import { SessionKeeper } from "./session/session_keeper";
import { sessions } from "./session_list/sessions";
import { prepareTimes } from "./ui/first_times";
import { dropNotice } from "./ui/notice";
import { applyTheme } from "./ui/theme";

export async function start(): Promise<void> {
  applyTheme();
  watchRoute();
  watchPresence();
  watchSessions(sessions);
  watchLogin();
  prepareTimes();
  window.addEventListener("pagehide", () => void saveAllDrafts());
  const token = readToken();
  if (token !== null) await enterByLink(token);
  // Whoever has no link is most likely logged in: the session is asked for together with the list.
  followRoute();
  if (token === null) await enter();
}

/** The session that the address names is the one that is kept up to date. */
function followRoute(): void {
  effect(() => {
    const deleted = sessions.deleted.value;
    if (deleted === null) return;
    dropComposer(deleted);
    if (route.peek().session === deleted) go(null);
  });
  effect(() => {
    const id = login.value === "needed" ? null : route.value.session;
    untracked(() => {
      const open = current.value;
      if (open?.id === id) return;
      if (open !== null) {
        open.close();
        void leaveComposer(open.id, () => current.peek()?.id === open.id);
      }
      dropNotice();
      current.value = id === null ? null : new SessionKeeper(id);
    });
  });
}
