/** Texts of the timeline and of the inspector, in English. */

import { bytes, tokens } from "./amounts";

const many = (count: number, one: string, more = `${one}s`): string => `${count} ${count === 1 ? one : more}`;

export const looking = {
  timeline: {
    step: (number: number): string => `Step ${number}`,
    details: (tool: string): string => `Details of ${tool}`,
    nested: "Nested calls",
    cancel: (tool: string, preview: string): string => `Cancel nested ${tool} ${preview}`.trim(),
    nestedCalls: "nested calls",
    count: (count: number, ended: number): string => (ended > 0 && ended < count ? `${ended} of ${count}` : `${count}`),
    /** For those who hear it: what a line of nested calls shows. */
    told: (tool: string, count: number, form: string, preview: string, ended = 0): string =>
      ended > 0 && ended < count
        ? `${tool}: ${count - ended} of ${count} ${form}`
        : `${tool}${preview ? ` ${preview}` : ""}: ${count > 1 ? `${count} ` : ""}${form}`,
    turn: (model: string, tools: string): string => `This turn: model ${model}, tools ${tools}`,
    saved: (serial: string, saved: string): string => `; one after another ${serial}, saved ${saved}`,
  },

  turn: {
    actions: "Actions for this turn",
    fork: "Fork from here",
    undo: "Undo this turn",
    undoTitle: "Undo this turn?",
    undoBody: "The turn leaves the transcript and what the model reads. Its changes of files are taken back.",
    undoConfirm: "Undo",
    refused: "It was not undone.",
    without: "Undo without its files",
  },

  inspector: {
    label: "Inspector",
    open: "Inspector",
    hide: "Hide inspector",
    tabs: { call: "Call", files: "Files", changes: "Changes", context: "Context" },
    call: {
      none: "Choose a call to see all of it: its bar in the transcript leads here.",
      gone: "This call is not loaded.",
      tool: "Tool",
      state: "State",
      where: "Where",
      began: "Began",
      waits: "Waits for",
      waitsFor: { person: "you", order: "other calls, or a free slot", nothing: "nothing" },
      beganAt: (time: string, waited: string): string => (waited ? `${time}, after waiting ${waited}` : time),
      running: (since: string): string => `running, ${since}`,
      done: (took: string): string => `done in ${took}`,
      cancel: "Cancel this call",
    },
    thisTurn: {
      label: "This turn",
      model: "model",
      tools: "tools",
      saved: "saved",
      serial: (serial: string): string => `Run one after another these calls would have taken ${serial}.`,
    },
    files: {
      root: "Workspace",
      path: "Folder",
      empty: "This folder is empty.",
      cut: (shown: string): string => `Only the beginning is shown: ${shown}.`,
      truncated: "There is more in this folder than is shown.",
      binary: (kind: string, size: number): string => `${kind}, ${bytes(size)}. It is no text, so it is not shown.`,
      size: bytes,
      again: "Read again",
    },
    changes: {
      none: "Nothing was changed in this session.",
      undone: "No change is left: the files are as they were before.",
      files: (count: number): string => `${many(count, "file")} changed`,
      select: (path: string): string => `Select ${path}`,
      same: "It is as it was before.",
      times: (count: number): string => many(count, "change"),
      revert: (count: number): string => `Revert ${many(count, "file")}`,
      revertAll: "Revert all",
      title: (count: number): string => `Revert ${many(count, "file")}?`,
      body: "They become what they were before this session changed them. All of them, or none.",
      confirm: "Revert",
    },
    context: {
      meter: "Context in use",
      used: (used: number, window: number | null): string =>
        window === null ? `${tokens(used)} tokens` : `${tokens(used)} of ${tokens(window)} tokens`,
      unknown: "Not known before the first reply.",
      parts: "Prompt",
      size: (characters: number): string => `${tokens(characters)} characters`,
      tools: (count: number): string => many(count, "tool"),
      none: "Nothing besides the messages.",
    },
  },

  diff: {
    label: (path: string): string => `Diff of ${path}`,
    added: "new",
    deleted: "deleted",
    moved: (to: string): string => `moved to ${to}`,
    more: (count: number): string => `${many(count, "more line")} not shown`,
    lines: (added: number, removed: number): string => `${added} added, ${removed} removed`,
  },
};
