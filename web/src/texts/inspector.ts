/** The inspector: one call, the files, the changes, the context. */

import { bytes, tokens } from "./amounts";
import { plural } from "./sentences";

export const inspector = {
  label: "Inspector",
  hide: "Hide inspector",
  tabs: { call: "Call", files: "Files", changes: "Changes", context: "Context" },
  call: {
    newest: "This is the newest call. To see another one, click its bar in the transcript.",
    none: "There are no calls here yet.",
    notLoaded: "This call is not loaded. Scroll to it in the transcript.",
    tool: "Tool",
    state: "State",
    where: "Where",
    started: "Started",
    waitingFor: "Waiting for",
    waitsFor: { person: "you", order: "other calls, or a free slot", nothing: "nothing" },
    startedAt: (time: string, waited: string): string => (waited ? `${time}, after waiting ${waited}` : time),
    running: (since: string): string => `Running, ${since}`,
    done: (took: string): string => `Done in ${took}`,
    cancel: "Cancel this call",
  },
  thisTurn: {
    label: "This turn",
    model: "Model",
    tools: "Tools",
    saved: "Saved",
    serial: (serial: string): string => `One after another, these calls would take ${serial}.`,
  },
};

export const files = {
  root: "Workspace",
  path: "Folder",
  empty: "This folder is empty.",
  cut: (shown: string): string => `Showing only the first ${shown}.`,
  truncated: "This folder has more entries than are shown here.",
  binary: (kind: string, size: number): string => `${kind}, ${bytes(size)}. This file is not text, so it is not shown.`,
  size: bytes,
  download: "Download",
  refresh: "Refresh",
};

export const changes = {
  none: "This session changed no files.",
  allReverted: "No changes are left. All files are as they were before.",
  files: (count: number): string => `${plural(count, "file")} changed`,
  select: (path: string): string => `Select ${path}`,
  same: "Same as before",
  times: (count: number): string => plural(count, "change"),
  revert: (count: number): string => `Revert ${plural(count, "file")}`,
  revertAll: "Revert all",
  title: (count: number): string => `Revert ${plural(count, "file")}?`,
  body: "Keryx restores each file as it was before this session changed it. If it cannot restore one of them, it changes none.",
  confirm: "Revert",
};

export const context = {
  meter: "Context used",
  used: (used: number, window: number | null): string =>
    window === null ? `${tokens(used)} tokens` : `${tokens(used)} of ${tokens(window)} tokens`,
  unknown: "Known after the first reply.",
  parts: "Prompt",
  size: (characters: number): string => `${tokens(characters)} characters`,
  tools: (count: number): string => plural(count, "tool"),
  none: "The prompt has only the messages.",
};
