/** The first steps: whether a model is configured, what could be, and the tour that needs none. */

import { effect, signal, untracked } from "@preact/signals";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import type { FoundServer, NewProvider, Setup } from "../api/types";
import { login } from "../login/login_state";
import { route } from "../navigation/route";
import { loadChoices } from "../session/choices";
import { beginSession, opening } from "../session/new_session";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { attempt } from "../ui/notice";

/** Null until the server has told. */
export const setup = signal<Setup | null>(null);
/** Model servers on this machine; null while they are looked for. */
export const servers = signal<readonly FoundServer[] | null>(null);
/** The model that was configured just now. */
export const readyModel = signal<string | null>(null);
/** All models that the configured servers have, as far as they were asked. */
export const offeredModels = signal<readonly string[]>([]);
/** Servers that did not say what they have, each with the reason. */
export const modelProblems = signal<readonly string[]>([]);
export const modelsShown = signal(false);

/** The tour that opens by itself is one, however many tabs are opened at once. */
const FIRST_TOUR = "s-the-first-tour";
const TOURED = "keryx.toured";
const TOUR = "scripted:tour";

export const isTour = (model: string): boolean => model === (setup.value?.tour ?? TOUR);

export async function lookForServers(): Promise<void> {
  servers.value = null;
  const answer = await keryx.servers().catch(() => ({ servers: [] }));
  servers.value = answer.servers;
}

/** The server tries it before it keeps it; nothing of the key stays here. */
export async function configure(provider: NewProvider): Promise<void> {
  const { model, models } = await keryx.configure(provider);
  const { model: _before, ...others } = opening.value;
  opening.value = others;
  setup.value = await keryx.setup();
  await loadChoices();
  offeredModels.value = models;
  readyModel.value = setup.value.model ?? model;
}

/** Asks the configured servers; what was known stays if they cannot be asked. */
export async function lookForModels(): Promise<void> {
  const answer = await keryx.offered().catch(() => null);
  if (answer === null) return;
  offeredModels.value = answer.models;
  modelProblems.value = answer.problems;
}

/** Another that is known; the server has its key already. */
export async function chooseDefault(model: string): Promise<void> {
  setup.value = await keryx.chooseDefault(model);
  readyModel.value = setup.value.model;
  await loadChoices();
}

/** What was said of it once need not be said again. */
export function showModels(): void {
  readyModel.value = null;
  modelsShown.value = true;
  if (setup.value?.configured) void lookForModels();
}

export function takeTour(sessionId = newSessionId()): Promise<void> {
  const { tour } = texts.setup;
  remember();
  return beginSession({ session_id: sessionId, model: setup.value?.tour ?? TOUR, title: tour.sessionTitle }, (id) =>
    keryx.send(id, { text: tour.firstMessage, key: `tour ${sessionId}` }),
  );
}

/** A home that is new shows what is special at once, before anybody has to decide anything. */
async function beginFirstSteps(): Promise<void> {
  // A server that cannot be asked now is not one that has no model.
  const state = await keryx.setup().catch(() => ({ configured: true, model: null, tour: TOUR }));
  const fresh = sessions.groups.value.length === 0 && sessions.problem.peek() === null;
  if (!state.configured && fresh && isStart(route.peek()) && !toured()) {
    await attempt(() => takeTour(FIRST_TOUR));
  }
  setup.value = state;
}

const isStart = ({ session, settings }: typeof route.value): boolean => session === null && settings === null;

/** At every login, since another server may have no model. */
export function watchFirstSteps(): void {
  effect(() => {
    if (login.value === "done") untracked(() => void beginFirstSteps());
  });
}

function toured(): boolean {
  try {
    return localStorage.getItem(TOURED) !== null;
  } catch {
    return false;
  }
}

function remember(): void {
  try {
    localStorage.setItem(TOURED, "yes");
  } catch {
    // Storage may be forbidden; then the tour opens again while there is no session.
  }
}
