/** What a session can be set to: models, profiles with their workspaces, tools. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import type { Models, Profiles, Tools } from "../api/types";

export const models = signal<Models>({ default: null, models: [] });
export const profiles = signal<Profiles>({ profiles: [], workspace: "", workspaces: [] });
export const toolkit = signal<Tools>({ tools: [], toolsets: [] });

/** What cannot be read now is read at the next occasion. */
export async function loadChoices(): Promise<void> {
  await Promise.allSettled([
    keryx.models().then((answer) => (models.value = answer)),
    keryx.profiles().then((answer) => (profiles.value = answer)),
    keryx.tools().then((answer) => (toolkit.value = answer)),
  ]);
}
