/** The list of sessions, and the search through all of them. */

import { plural } from "./sentences";

export const list = {
  label: "Sessions",
  open: "Sessions",
  close: "Close the list",
  newSession: "New session",
  search: "Search",
  searchKeys: "Ctrl K",
  pinned: "Pinned",
  active: "Active",
  today: "Today",
  yesterday: "Yesterday",
  untitled: "New session",
  more: "Show more",
  empty: "No sessions yet.",
  emptyArchive: "No archived sessions.",
  archived: "Archived",
  backFromArchive: "Back to sessions",
  running: "Running",
  waiting: "Waiting for you",
  damaged: "Damaged",
  failed: "Failed",
  now: "Now",
  actions: (title: string): string => `Actions for ${title}`,
  rename: "Rename",
  pin: "Pin",
  unpin: "Unpin",
  duplicate: "Duplicate",
  copyOf: (title: string): string => `${title} (copy)`,
  tags: "Tags",
  export: "Export",
  share: "Share",
  archive: "Archive",
  unarchive: "Unarchive",
  delete: "Delete",
  title: "Title",
  settings: "Settings",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },
  language: "Language",
  signOut: "Sign out",
};

export const deletion = {
  title: "Delete this session?",
  body: (title: string): string => `Keryx deletes “${title}” and everything in it. You cannot undo this.`,
  confirm: "Delete",
};

export const search = {
  title: "Search",
  label: "Search all sessions",
  placeholder: "Search messages, replies and calls",
  none: "No results",
  count: (count: number): string => plural(count, "result"),
  kinds: { message: "You", reply: "Reply", call: "Call" },
};
