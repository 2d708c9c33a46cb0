/** What a folder brings along, and whether a person trusts it. */

export const trust = {
  label: "Trust this folder",
  /** `summary`: "1 MCP server and 2 skills". */
  line: (summary: string): string => `This folder brings along ${summary}. They are off until you trust it.`,
  review: "Review…",
  title: "Trust this folder?",
  lead: "What stands here could run with your sessions in this folder. Trust it only if you know where it comes from. If it changes, Keryx asks again.",
  servers: "MCP servers",
  hooks: "Hooks",
  skills: "Skills",
  hook: (event: string, tools: string): string => (tools === "" ? event : `${event} ${tools}`),
  confirm: "Trust this folder",
  done: "The folder is trusted. What it brings along is used from the next turn on.",
};
