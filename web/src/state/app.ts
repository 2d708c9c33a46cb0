/** What the page as a whole knows: who is logged in, what is open, what can be chosen. */

import { effect, signal, untracked } from "@preact/signals";
import { newSessionId } from "../api/ids";
import { whenUnauthorized } from "../api/http";
import * as keryx from "../api/keryx";
import { watchPresence } from "../api/presence";
import { asProblem, Problem } from "../api/problem";
import type { Models, Opening, Outgoing, Profiles, Tools } from "../api/shapes";
import { texts } from "../texts";
import { readToken } from "./address";
import { Composing } from "./composing";
import { forgetSecret, ownSecret } from "./entering";
import { SessionKeeper } from "./opened";
import { dropToken, go, route, watchRoute } from "./route";
import { Sessions } from "./sessions";
import { watchNews } from "./telling";
import { applyTheme } from "./theme";
import { forgetAll, Unsaved } from "./unsaved";

export type Login = "unknown" | "needed" | "done";

export const login = signal<Login>("unknown");
export const loginProblem = signal<Problem | null>(null);
export const sessions = new Sessions();
export const current = signal<SessionKeeper | null>(null);
export const models = signal<Models>({ default: null, models: [] });
export const profiles = signal<Profiles>({ profiles: [], workspace: "", workspaces: [] });
export const toolkit = signal<Tools>({ tools: [], toolsets: [] });
/** What went wrong with something that was clicked, said once at the bottom of the page. */
export const notice = signal<Problem | null>(null);
export const listShown = signal(false);
export const searchShown = signal(false);

/** How the next session is to begin. */
export const opening = signal<Omit<Opening, "session_id">>({});

const composings = new Map<string, Composing>();
let nextSession = newSessionId();

/** The composer of a session, or of the one that its first message will open. */
export function composingOf(id: string | null): Composing {
  const key = id ?? "";
  const known = composings.get(key);
  if (known !== undefined) return known;
  const made =
    id === null
      ? new Composing((message) => begin({}, (made) => open(made, message)), null, new Unsaved(""))
      : new Composing(
          async (message) => void (await keryx.send(id, message)),
          (text, attachments) => keryx.saveDraft(id, text, attachments),
          new Unsaved(id),
        );
  composings.set(key, made);
  return made;
}

/** What was typed while the first message was on its way is meant for the session that it opens. */
async function open(id: string, message: Outgoing): Promise<void> {
  await keryx.send(id, message);
  const { text } = composingOf(null);
  if (!text.value.startsWith(message.text) || text.value === message.text) return;
  composingOf(id).type(text.value.slice(message.text.length));
  text.value = message.text;
}

/** The id was minted here, so a second try opens the same session and says the same once. */
export async function begin(more: Partial<Opening>, first: (id: string) => Promise<unknown>): Promise<void> {
  const id = more.session_id ?? nextSession;
  await keryx.openSession({ ...opening.value, ...more, session_id: id });
  await first(id);
  if (id === nextSession) nextSession = newSessionId();
  go(id);
}

/** Does what a click asked for; a problem is shown, never thrown away. */
export async function attempt(action: () => Promise<unknown>): Promise<boolean> {
  try {
    await action();
    return true;
  } catch (error) {
    notice.value = asProblem(error);
    return false;
  }
}

export async function logIn(proof: { token?: string; password?: string }): Promise<void> {
  try {
    await keryx.login(proof.token === undefined ? proof : { ...proof, browser: ownSecret() });
    forgetSecret();
    loginProblem.value = null;
    await enter();
    dropToken();
  } catch (error) {
    loginProblem.value = asProblem(error);
    login.value = "needed";
  }
}

/**
 * A link works once; whoever used it before is logged in still. It stays in the address until the
 * server has answered: a page that is loaded anew before that has to say the same again.
 */
async function enterByLink(token: string): Promise<void> {
  try {
    await keryx.login({ token, browser: ownSecret() });
    forgetSecret();
    dropToken();
  } catch (error) {
    const problem = asProblem(error);
    const used = problem.kind === "unauthorized";
    if (used) {
      forgetSecret();
      dropToken();
    }
    loginProblem.value = used ? new Problem("unauthorized", problem.status, texts.login.linkUsed) : problem;
  }
  await enter();
  if (login.peek() === "done") loginProblem.value = null;
  else login.value = "needed";
}

export async function logOut(): Promise<void> {
  await Promise.all([...composings.values()].map((each) => each.flush()));
  if (!(await attempt(keryx.logout))) return;
  forgetAll();
  location.reload();
}

/** Loads what the page shows; again, if the server could not be reached before. */
export async function enter(): Promise<void> {
  sessions.problem.value = null;
  await sessions.start();
  if (sessions.problem.peek()?.kind === "unauthorized") return;
  login.value = "done";
  void askAround();
}

/** What can be chosen; what cannot be read now is read at the next occasion. */
export async function askAround(): Promise<void> {
  await Promise.allSettled([
    keryx.models().then((told) => (models.value = told)),
    keryx.profiles().then((told) => (profiles.value = told)),
    keryx.tools().then((told) => (toolkit.value = told)),
  ]);
}

export async function start(): Promise<void> {
  applyTheme();
  watchRoute();
  watchPresence();
  watchNews(sessions);
  whenUnauthorized(() => {
    login.value = "needed";
    sessions.stop();
  });
  window.addEventListener("pagehide", () => {
    for (const each of composings.values()) void each.flush();
  });
  // A link that is opened in a tab that is here already changes only what stands behind the #.
  window.addEventListener("hashchange", () => {
    const token = readToken();
    if (token !== null) void enterByLink(token);
  });
  const token = readToken();
  if (token !== null) await enterByLink(token);
  // Whoever has no link is most likely logged in: the session is asked for together with the list.
  followRoute();
  if (token === null) await enter();
}

/** Saves what was typed; an empty composer is not worth keeping. */
function leave(id: string): void {
  const composing = composings.get(id);
  void composing?.flush().then(() => {
    if (composing.isEmpty && current.peek()?.id !== id && composings.get(id) === composing) composings.delete(id);
  });
}

/** The session that the address names is the one that is kept up to date. */
function followRoute(): void {
  effect(() => {
    const gone = sessions.deleted.value;
    if (gone === null) return;
    composings.get(gone)?.abandon();
    composings.delete(gone);
    if (route.peek().session === gone) go(null);
  });
  effect(() => {
    const id = login.value === "needed" ? null : route.value.session;
    untracked(() => {
      const open = current.value;
      if (open?.id === id) return;
      if (open !== null) {
        open.close();
        leave(open.id);
      }
      current.value = id === null ? null : new SessionKeeper(id);
    });
  });
}
