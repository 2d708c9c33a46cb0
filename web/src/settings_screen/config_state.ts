/** What config.toml says, as the page has read it; changes of it, one after the other; conflicts. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { SettingsShown } from "../api/types";
import { loadChoices } from "../session/choices";
import { setup } from "../setup/setup_state";
import { type Conflict, conflictsOf, type Edit, isSame, type Path, valueAt } from "./document";

export const config = signal<SettingsShown | null>(null);
export const configProblem = signal<Problem | null>(null);
export const conflicts = signal<readonly Conflict[]>([]);

/** A change names the revision that the one before it made. */
let last: Promise<unknown> = Promise.resolve();

export async function loadConfig(): Promise<void> {
  try {
    config.value = await keryx.config();
    configProblem.value = null;
  } catch (error) {
    configProblem.value = asProblem(error);
  }
}

/** Writes the edits together. False: somebody changed the same settings, and the person must decide. */
export function save(edits: readonly Edit[]): Promise<boolean> {
  const written = last.then(() => write(edits));
  last = written.catch(() => undefined);
  return written;
}

async function write(edits: readonly Edit[]): Promise<boolean> {
  const shown = config.peek();
  if (shown === null) return false;
  const changes = edits.map((edit) => ({ ...edit, before: valueAt(shown.document, edit.path) }));
  try {
    config.value = await keryx.changeConfig(shown.revision, changes);
  } catch (error) {
    if (asProblem(error).serverKind !== "changed_meanwhile") throw error;
    await loadConfig();
    addConflicts(conflictsOf(shown.document, config.peek()?.document, edits));
    return false;
  }
  void refreshOthers();
  return true;
}

/** Other parts of the page show models, profiles and tools. */
export async function refreshOthers(): Promise<void> {
  await Promise.allSettled([loadChoices(), keryx.setup().then((answer) => (setup.value = answer))]);
}

function addConflicts(newest: readonly Conflict[]): void {
  const others = conflicts.peek().filter(({ path }) => !newest.some((conflict) => isSame(conflict.path, path)));
  conflicts.value = [...others, ...newest];
}

export function dropConflict(path: Path): void {
  conflicts.value = conflicts.peek().filter((conflict) => !isSame(conflict.path, path));
}
