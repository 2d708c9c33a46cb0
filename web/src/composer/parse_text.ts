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

export interface Slash {
  readonly name: SlashName;
  /** What it is about: a value to choose, free words, or nothing. */
  readonly takes: "choice" | "words" | "nothing";
  /** Whether there must be a session already. */
  readonly inSession: boolean;
}

export const SLASHES: readonly Slash[] = [
  { name: "model", takes: "choice", inSession: false },
  { name: "workspace", takes: "choice", inSession: false },
  { name: "personality", takes: "choice", inSession: false },
  { name: "effort", takes: "choice", inSession: false },
  { name: "exec", takes: "words", inSession: false },
  { name: "fork", takes: "nothing", inSession: true },
  { name: "undo", takes: "nothing", inSession: true },
  { name: "stop", takes: "nothing", inSession: true },
  { name: "compact", takes: "nothing", inSession: true },
  { name: "help", takes: "nothing", inSession: false },
];

export type Said =
  | { readonly what: "message" }
  | { readonly what: "terminal"; readonly command: string }
  | { readonly what: "code"; readonly code: string }
  | { readonly what: "slash"; readonly slash: Slash; readonly rest: string }
  /** It looks like a slash command, and there is none of that name. */
  | { readonly what: "unknown"; readonly name: string };

const MESSAGE: Said = { what: "message" };

/** A space before it makes a message of anything. */
export function read(text: string): Said {
  if (text.startsWith("!")) {
    const command = text.slice(1).trim();
    return command === "" ? MESSAGE : { what: "terminal", command };
  }
  // A path has a second slash in its first word, and is no command.
  const match = /^\/([a-zA-Z]+)(?:\s+([\s\S]*))?$/.exec(text);
  if (match === null) return MESSAGE;
  const [, name = "", rest = ""] = match;
  const slash = SLASHES.find((each) => each.name === name.toLowerCase());
  if (slash === undefined) return { what: "unknown", name };
  if (slash.name === "exec" && rest.trim() !== "") return { what: "code", code: rest };
  return { what: "slash", slash, rest: rest.trim() };
}

/** What the text before the caret asks to be completed. */
export type Wanted =
  | { readonly what: "slash"; readonly typed: string; readonly from: number }
  | { readonly what: "choice"; readonly name: SlashName; readonly typed: string; readonly from: number }
  | { readonly what: "file"; readonly folder: string; readonly typed: string; readonly from: number };

export function wanted(text: string, caret: number): Wanted | null {
  const before = text.slice(0, caret);
  const slash = /^\/([a-zA-Z]*)$/.exec(before);
  if (slash !== null) return { what: "slash", typed: slash[1]!.toLowerCase(), from: 0 };
  const choice = /^\/([a-zA-Z]+)[ \t]+([^\n]*)$/.exec(before);
  if (choice !== null) {
    const found = SLASHES.find((each) => each.name === choice[1]!.toLowerCase());
    if (found?.takes !== "choice") return null;
    return { what: "choice", name: found.name, typed: choice[2]!, from: caret - choice[2]!.length };
  }
  const file = /(?:^|\s)@([^\s@]*)$/.exec(before);
  if (file === null) return null;
  const path = file[1]!;
  const cut = path.lastIndexOf("/") + 1;
  return { what: "file", folder: path.slice(0, cut), typed: path.slice(cut), from: caret - path.length - 1 };
}

/** Those that begin with what was typed, then those that hold it; in the order given otherwise. */
export function matching<T>(all: readonly T[], typed: string, name: (each: T) => string): T[] {
  const sought = typed.toLowerCase();
  const ranked = all.map((each) => ({ each, at: name(each).toLowerCase().indexOf(sought) }));
  const found = ranked.filter(({ at }) => at >= 0);
  return [...found.filter(({ at }) => at === 0), ...found.filter(({ at }) => at > 0)].map(({ each }) => each);
}

/** A path as it stands in a sentence. */
export function written(path: string): string {
  return /\s/.test(path) ? `"${path}"` : path;
}
