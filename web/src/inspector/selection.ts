/** What the inspector shows, and whether it is there; a person's choice is kept in this browser. */

import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";

export type Tab = "call" | "files" | "changes" | "context";

const KEY = "keryx.inspector";
const WIDE = "(min-width: 1180px)";
const MOST_KEPT = 500;

type Choice = "open" | "closed" | "auto";

function stored(): Choice {
  try {
    const value = localStorage.getItem(KEY);
    return value === "open" || value === "closed" ? value : "auto";
  } catch {
    return "auto";
  }
}

export const tab = signal<Tab>("call");
export const chosen = signal<string | null>(null);
/** The file or folder that the tab of files shows, in the workspace. */
export const path = signal(".");
/** Whether there is room beside the transcript; else it lies over it. */
export const wide = signal(matchMedia(WIDE).matches);
/** A person's choice; until there is one, the inspector opens when there is something in it. */
const beside = signal<Choice>(stored());
const over = signal(false);
/** Whether the session on screen has made a call. */
export const hasContent = signal(false);
export const shown = computed(() =>
  wide.value ? beside.value === "open" || (beside.value === "auto" && hasContent.value) : over.value,
);

export function watchRoom(): void {
  const room = matchMedia(WIDE);
  room.addEventListener("change", () => {
    wide.value = room.matches;
    over.value = false;
  });
  effect(() => {
    const { value } = beside;
    if (value === "auto") return;
    try {
      localStorage.setItem(KEY, value);
    } catch {
      // Storage may be forbidden; then the choice holds until the page is left.
    }
  });
}

export function show(visible: boolean): void {
  if (wide.value) beside.value = visible ? "open" : "closed";
  else over.value = visible;
}

export function choose(callId: string): void {
  chosen.value = callId;
  tab.value = "call";
  show(true);
}

/** Shows a file of the workspace. */
export function openFile(file: string): void {
  path.value = file;
  tab.value = "files";
  show(true);
}

const choices = new Map<string, ReadonlySignal<boolean>>();

/** One signal per call, so that a choice draws two rows anew and not all of them. */
export function isChosen(callId: string): ReadonlySignal<boolean> {
  const existing = choices.get(callId);
  if (existing !== undefined) return existing;
  const isShown = computed(() => chosen.value === callId && shown.value);
  choices.set(callId, isShown);
  if (choices.size > MOST_KEPT) choices.delete(choices.keys().next().value!);
  return isShown;
}
