/** The tiny model of the server's machine: one click downloads it, chooses it and starts a session. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import type { LocalModel } from "../api/types";
import { beginSession } from "../session/new_session";
import { texts } from "../texts";
import { chooseDefault } from "./setup_state";

/** Milliseconds between two looks at a download. */
const INTERVAL = 400;

/** Null until the server has told. */
export const localModel = signal<LocalModel | null>(null);

let following: Promise<void> | null = null;

/** Looks once, and then again and again while a download runs: another tab may have started it. */
export async function lookForLocalModel(): Promise<void> {
  localModel.value = await keryx.localModel();
  if (localModel.value.state === "pulling") await follow();
}

/** Downloads it if it is not here yet, and then says the first words to it. */
export async function chatWithLocalModel(): Promise<void> {
  localModel.value = await keryx.pullLocalModel();
  await follow();
  const { state, model } = localModel.value;
  if (state !== "ready") return;
  await chooseDefault(model);
  const sessionId = newSessionId();
  await beginSession({ session_id: sessionId, model }, (id) =>
    keryx.send(id, { text: texts.setup.local.firstMessage, key: `local ${sessionId}` }),
  );
}

/** However many wait for the end of the download, one of them asks for it. */
function follow(): Promise<void> {
  following ??= untilPulled().finally(() => (following = null));
  return following;
}

async function untilPulled(): Promise<void> {
  while (localModel.value?.state === "pulling") {
    await new Promise((resolve) => setTimeout(resolve, INTERVAL));
    localModel.value = await keryx.localModel();
  }
}
