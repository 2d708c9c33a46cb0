/** Tells a person who looks elsewhere: notifications if they allow it, a number in the tab's title. */

import { effect, signal } from "@preact/signals";
import { Problem } from "../api/problem";
import { ownName } from "../api/root";
import { texts } from "../texts";
import { news } from "./news";
import { go } from "./route";
import type { Sessions } from "./sessions";

const KEY = "keryx.tell";
const CHANNEL = ownName("keryx.asking");

/** Missing where the page is not served securely, and on some phones. */
export const canTell = "Notification" in globalThis && "locks" in navigator;

function stored(): boolean {
  try {
    return localStorage.getItem(KEY) === "yes";
  } catch {
    return false;
  }
}

export const tells = signal(canTell && stored() && Notification.permission === "granted");
/** How many sessions wait for an answer. */
export const asking = signal(0);

/** Only a click may ask for the permission. */
export async function chooseTelling(wanted: boolean): Promise<void> {
  const allowed = wanted && (await Notification.requestPermission()) === "granted";
  tells.value = allowed;
  try {
    localStorage.setItem(KEY, allowed ? "yes" : "no");
  } catch {
    // Storage may be forbidden; then the choice holds until the page is left.
  }
  if (wanted && !allowed) throw new Problem("refused", 0, texts.notifications.blocked);
}

export function watchNews(sessions: Sessions): void {
  sessions.onChange = (before, now) => {
    // All tabs hear of it; one tells, and none if another one is looked at, which then reads.
    const text = document.hidden && sessions.reads && tells.peek() ? news(before, now) : null;
    if (text !== null) notify(now.session_id, text);
  };
  // A tab that rests hears of it from the one that listens.
  const others = "BroadcastChannel" in globalThis ? new BroadcastChannel(CHANNEL) : null;
  others?.addEventListener("message", (event: MessageEvent<unknown>) => {
    if (document.hidden && typeof event.data === "number") asking.value = event.data;
  });
  effect(() => {
    const count = sessions.asking.value;
    if (count === asking.peek()) return;
    asking.value = count;
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
