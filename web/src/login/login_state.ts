/** Whether the person is logged in, and the ways in and out. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { whenUnauthorized } from "../api/http";
import { asProblem, Problem } from "../api/problem";
import { saveAllDrafts } from "../composer/composers";
import { forgetAllDrafts } from "../composer/unsaved_draft";
import { readToken } from "../navigation/address";
import { dropToken } from "../navigation/route";
import { loadChoices } from "../session/choices";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { firstFramesPast } from "../ui/first_frames";
import { attempt } from "../ui/notice";
import { forgetSecret, ownSecret } from "./browser_secret";

export type Login = "unknown" | "needed" | "done";

export const login = signal<Login>("unknown");
export const loginProblem = signal<Problem | null>(null);

/** Whether there are named users: then people sign in with their names. */
export const asksName = signal(false);
/** Whoever is signed in by name; null for the owner of the server. */
export const userName = signal<string | null>(null);

export async function readWhetherNamesAreAsked(): Promise<void> {
  try {
    asksName.value = (await keryx.health()).asks_name ?? false;
  } catch {
    // The form works without it: an owner needs no name.
  }
}

export async function logIn(proof: { token?: string; password?: string; name?: string }): Promise<void> {
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
export async function enterByLink(token: string): Promise<void> {
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
  await saveAllDrafts();
  if (!(await attempt(keryx.logout))) return;
  forgetAllDrafts();
  location.reload();
}

/** Loads what the page shows; again, if the server could not be reached before. */
export async function enter(): Promise<void> {
  sessions.problem.value = null;
  await firstFramesPast();
  await sessions.start();
  if (sessions.problem.peek()?.kind === "unauthorized") return;
  login.value = "done";
  void loadChoices();
  void keryx.me().then(
    (me) => (userName.value = me.user),
    () => undefined,
  );
}

export function watchLogin(): void {
  whenUnauthorized(() => {
    login.value = "needed";
    sessions.stop();
  });
  // A link that is opened in a tab that is here already changes only what stands behind the #.
  window.addEventListener("hashchange", () => {
    const token = readToken();
    if (token !== null) void enterByLink(token);
  });
}
