/** Tells a person who looks elsewhere: notifications if they allow it, a number in the tab's title. */

import { effect, signal } from "@preact/signals";
import { ownName } from "../api/own_name";
import { Problem } from "../api/problem";
import { go } from "../navigation/route";
import type { Sessions } from "../session_list/session_list_store";
import { texts } from "../texts";
import { newsText } from "./news_text";

const KEY = "keryx.tell";
const CHANNEL = ownName("keryx.asking");

/** Missing where the page is not served securely, and on some phones. */
export const canNotify = "Notification" in globalThis && "locks" in navigator;

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false;
  }
}

export const notifying = signal(canNotify && stored() && Notification.permission === "granted");
/** How many sessions wait for an answer. */
export const waitingCount = signal(0);

/** Only a click may ask for the permission. */
export async function setNotifying(on: boolean): Promise<void> {
  const allowed = on && (await Notification.requestPermission()) === "granted";
  notifying.value = allowed;
  try {
    localStorage.setItem(KEY, allowed ? "yes" : "no");
  } catch {
    // Storage may be forbidden; then the choice holds until the page is left.
  }
  if (on && !allowed) throw new Problem("refused", 0, texts.notifications.blocked);
}

export function watchSessions(sessions: Sessions): void {
  sessions.onChange = (before, now) => {
    // All tabs hear of it; one tells, and none if another one is looked at, which then reads.
    const text = document.hidden && sessions.reads && notifying.peek() ? newsText(before, now) : null;
    if (text !== null) notify(now.session_id, text);
  };
  // A tab that rests hears of it from the one that listens.
  const others = "BroadcastChannel" in globalThis ? new BroadcastChannel(CHANNEL) : null;
  others?.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (document.hidden && typeof event.data === "number") waitingCount.value = event.data;
  });
  effect(() => {
    const count = sessions.asking.value;
    if (count === waitingCount.peek()) return;
    waitingCount.value = count;
    others?.postMessage(count);
  });
}

function notify(sessionId: string, text: string): void {
  try {
    // One for each session: the newest takes the place of the one before.
    const shown = new Notification(text, { tag: sessionId, icon: "icon.svg" });
    shown.onclick = () => {
      window.focus();
      go(sessionId);
      shown.close();
    };
  } catch {
    // Some browsers have the name and refuse to make one; the badge tells as well.
  }
}
