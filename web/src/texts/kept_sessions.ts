/** Keeping sessions in order: choosing several, tags, copies, files, links. */

import { plural } from "./sentences";

export const selecting = {
  start: "Select",
  stop: "Done",
  all: "Select all",
  bar: "Selected sessions",
  count: (count: number): string => `${count} selected`,
  archive: "Archive",
  unarchive: "Unarchive",
  tag: "Tags",
  export: "Export",
  delete: "Delete",
  keys: "Shift+click selects a range. Ctrl+A selects all. Esc ends.",
  deleteTitle: (count: number): string => `Delete ${plural(count, "session")}?`,
  deleteBody: (count: number): string =>
    `Keryx deletes ${plural(count, "session")} and everything in them. You cannot undo this.`,
};

export const tags = {
  title: "Tags",
  lead: "A tag is shown as a folder in the list.",
  folder: (name: string, count: number): string => `${name}, ${plural(count, "session")}`,
  list: "Tags",
  none: "No tags yet.",
  add: "Add",
  label: "New tag",
  tooMany: (most: number): string => `A session has at most ${most} tags. Uncheck some.`,
};

export const exporting = {
  title: "Export",
  format: "Format",
  formats: {
    markdown: "Markdown: to read and edit",
    html: "HTML: to read in any browser",
    json: "JSON: complete, to import again",
    jsonl: "JSON lines: one session on each line",
  },
  archive: (count: number): string => `${plural(count, "session")} in one file.`,
  tooMany: (most: number): string => `Choose at most ${most} sessions at a time.`,
  download: "Download",
};

export const importing = {
  start: "Import",
  title: "Import sessions",
  lead: "Choose a file: an export of Keryx, a list of messages as OpenAI has it, or sessions of hermes-agent.",
  file: "File",
  confirm: "Import",
  done: (count: number): string => `${plural(count, "session")} imported.`,
  leftOut: (count: number): string => `${plural(count, "system message")} left out: Keryx has its own instructions.`,
  open: "Open",
};

export const sharing = {
  title: "Share",
  lead: "Anyone with the link can read this session. They need no login, and cannot write.",
  expires: "Expires",
  days: { "1": "After 1 day", "7": "After 7 days", "30": "After 30 days", never: "Never" },
  shows: "Content",
  upToNow: "As it is now",
  follows: "Also what comes later",
  attachments: "Show pictures",
  create: "Create link",
  once: "Copy the link now. It is not shown again.",
  link: "Link",
  copy: "Copy",
  copied: "Copied",
  list: "Links",
  none: "No links.",
  created: (time: string): string => `Created ${time}`,
  until: (time: string): string => `works until ${time}`,
  always: "never expires",
  following: "shows what comes later too",
  revoke: "Revoke",
  revokeOf: (about: string): string => `Revoke: ${about}`,
};
