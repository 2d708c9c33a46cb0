/**
 * What a text in the composer is: a message, a command of the terminal, code, or a slash command.
 * Pure: it reads the text and does nothing.
 */

export type SlashName =
  | "model"
  | "workspace"
  | "personality"
  | "effort"
  | "fork"
  | "undo"
  | "stop"
  | "compact"
  | "exec"
  | "help";

export interface SlashCommand {
  readonly name: SlashName;
  /** What it is about: a value to choose, free words, free words or nothing, or nothing. */
  readonly takes: "choice" | "words" | "optional" | "nothing";
  /** Whether there must be a session already. */
  readonly inSession: boolean;
}

export const SLASH_COMMANDS: readonly SlashCommand[] = [
  { name: "model", takes: "choice", inSession: false },
  { name: "workspace", takes: "choice", inSession: false },
  { name: "personality", takes: "choice", inSession: false },
  { name: "effort", takes: "choice", inSession: false },
  { name: "exec", takes: "words", inSession: false },
  { name: "fork", takes: "nothing", inSession: true },
  { name: "undo", takes: "nothing", inSession: true },
  { name: "stop", takes: "nothing", inSession: true },
  { name: "compact", takes: "optional", inSession: true },
  { name: "help", takes: "nothing", inSession: false },
];

export type ParsedText =
  | { readonly what: "message" }
  | { readonly what: "terminal"; readonly command: string }
  | { readonly what: "code"; readonly code: string }
  | { readonly what: "slash"; readonly slash: SlashCommand; readonly rest: string }
  /** It looks like a slash command, and there is none of that name. */
  | { readonly what: "unknown"; readonly name: string };

const MESSAGE: ParsedText = { what: "message" };

/** A space before it makes a message of anything. */
export function parseText(text: string): ParsedText {
  if (text.startsWith("!")) {
    const command = text.slice(1).trim();
    return command === "" ? MESSAGE : { what: "terminal", command };
  }
  // A path has a second slash in its first word, and is no command.
  const match = /^\/([a-zA-Z]+)(?:\s+([\s\S]*))?$/.exec(text);
  if (match === null) return MESSAGE;
  const [, name = "", rest = ""] = match;
  const slash = SLASH_COMMANDS.find((command) => command.name === name.toLowerCase());
  if (slash === undefined) return { what: "unknown", name };
  if (slash.name === "exec" && rest.trim() !== "") return { what: "code", code: rest };
  return { what: "slash", slash, rest: rest.trim() };
}

/** What the text before the caret asks to be completed. */
export type CompletionTarget =
  | { readonly what: "slash"; readonly typed: string; readonly from: number }
  | { readonly what: "choice"; readonly name: SlashName; readonly typed: string; readonly from: number }
  | { readonly what: "file"; readonly folder: string; readonly typed: string; readonly from: number };

export function completionTarget(text: string, caret: number): CompletionTarget | null {
  const before = text.slice(0, caret);
  const slash = /^\/([a-zA-Z]*)$/.exec(before);
  if (slash !== null) return { what: "slash", typed: slash[1]!.toLowerCase(), from: 0 };
  const choice = /^\/([a-zA-Z]+)[ \t]+([^\n]*)$/.exec(before);
  if (choice !== null) {
    const command = SLASH_COMMANDS.find((command) => command.name === choice[1]!.toLowerCase());
    if (command?.takes !== "choice") return null;
    return { what: "choice", name: command.name, typed: choice[2]!, from: caret - choice[2]!.length };
  }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  if (file === null) return null;
  const path = file[1]!;
  const cut = path.lastIndexOf("/") + 1;
  return { what: "file", folder: path.slice(0, cut), typed: path.slice(cut), from: caret - path.length - 1 };
}

/** Those that begin with what was typed, then those that hold it; in the order given otherwise. */
export function rankMatches<T>(all: readonly T[], typed: string, name: (item: T) => string): T[] {
  const sought = typed.toLowerCase();
  const ranked = all.map((item) => ({ item, at: name(item).toLowerCase().indexOf(sought) }));
  const hits = ranked.filter(({ at }) => at >= 0);
  return [...hits.filter(({ at }) => at === 0), ...hits.filter(({ at }) => at > 0)].map(({ item }) => item);
}

/** A path as it stands in a sentence. */
export function quotedPath(path: string): string {
  return /\s/.test(path) ? `"${path}"` : path;
}
