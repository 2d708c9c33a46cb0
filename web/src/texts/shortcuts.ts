/** The list of commands that Ctrl+K offers beside what it finds. */

export const shortcuts = {
  commands: "Commands",
  sessions: "Sessions",
  results: "In sessions",
  newSession: "New session",
  toggleInspector: "Show or hide the inspector",
  archived: "Archived sessions",
  keys: "Commands and keys",
  theme: (name: string): string => `Theme: ${name}`,
  run: (name: string): string => `/${name}`,
};
