/** What can be completed where the caret stands: commands, their values, files. One per composer. */

import { signal } from "@preact/signals";
import * as keryx from "../api/client";
import { asProblem } from "../api/problem";
import type { Entry } from "../api/types";
import { models, profiles } from "../session/choices";
import { texts } from "../texts";
import { type CompletionTarget, completionTarget, quotedPath, rankMatches, SLASH_COMMANDS } from "./parse_text";

const MOST = 60;

export interface Suggestion {
  readonly key: string;
  readonly name: string;
  readonly about: string;
  /** What stands in the place of what was typed. */
  readonly text: string;
  /** done: it says all, and can be done at once. more: what comes next is completed too. */
  readonly followUp: "done" | "more" | "nothing";
}

/** What the values are that a command chooses from, and which one holds now. */
export interface Choices {
  readonly sessionId: string | null;
  /** A session that works in the same folder, if there is one: files are seen through a session. */
  readonly files: string | null;
  readonly profile: string | null;
  readonly now: Readonly<Partial<Record<string, string | null>>>;
}

type FileTarget = CompletionTarget & { what: "file" };

interface Folder {
  readonly path: string;
  readonly entries: readonly Entry[];
  readonly missing: boolean;
}

export class Completion {
  readonly list = signal<readonly Suggestion[]>([]);
  readonly at = signal(0);
  /** Why nothing is offered for what was typed after an `@`. */
  readonly says = signal("");
  /** What is offered belongs to what was typed before: the next list is on its way, and nothing can be taken. */
  readonly isOld = signal(false);
  private from = 0;
  private request: { readonly path: string; readonly abort: AbortController } | null = null;
  private folder: Folder | null = null;
  /** What was typed last, when it names a file. */
  private target: FileTarget | null = null;
  private closed: string | null = null;

  /** The text or the caret has changed. */
  look(text: string, caret: number, choices: Choices): void {
    if (this.closed !== null && this.closed !== text) this.closed = null;
    const target = this.closed === null ? completionTarget(text, caret) : null;
    if (target?.what === "file") return this.lookForFiles(target, choices.files);
    this.stopReading();
    this.folder = null;
    if (target === null) return this.show([], 0);
    if (target.what === "slash") this.show(slashes(target.typed, choices), target.from);
    else this.show(values(target.name, target.typed, choices), target.from);
  }

  move(by: number): void {
    const count = this.list.value.length;
    if (count > 0) this.at.value = (this.at.value + by + count) % count;
  }

  /** Until something else is typed. */
  close(text: string): void {
    this.closed = text;
    this.stopReading();
    this.show([], 0);
  }

  get chosen(): Suggestion | null {
    return this.list.value[this.at.value] ?? null;
  }

  /** The text with the suggestion in it, and where the caret stands then. */
  complete(suggestion: Suggestion, text: string, caret: number): { text: string; caret: number } {
    const before = text.slice(0, this.from) + suggestion.text;
    return { text: before + text.slice(caret), caret: before.length };
  }

  private show(list: readonly Suggestion[], from: number, says = ""): void {
    const index = list.findIndex((suggestion) => suggestion.key === this.chosen?.key);
    this.from = from;
    this.list.value = list;
    this.at.value = Math.max(0, index);
    this.says.value = says;
    this.isOld.value = false;
  }

  private lookForFiles(target: FileTarget, sessionId: string | null): void {
    if (sessionId === null) return this.show([], 0, texts.commands.noFilesYet);
    this.target = target;
    if (this.folder?.path === target.folder) this.showFiles(target, this.folder);
    // Who types on waits for the same folder.
    else if (this.request?.path !== target.folder) void this.readFolder(target.folder, sessionId);
  }

  private async readFolder(path: string, sessionId: string): Promise<void> {
    this.stopReading();
    const abort = new AbortController();
    this.request = { path, abort };
    this.isOld.value = true;
    let folder: Folder;
    try {
      const shown = await keryx.readPath(sessionId, path || ".", abort.signal);
      folder = { path, entries: shown.kind === "folder" ? shown.entries : [], missing: false };
    } catch (error) {
      folder = { path, entries: [], missing: asProblem(error).kind === "not_found" };
    }
    if (abort.signal.aborted) return;
    this.request = null;
    this.folder = folder;
    this.showFiles(this.target!, folder);
  }

  private showFiles(target: FileTarget, { entries, missing }: Folder): void {
    this.stopReading();
    if (missing) return this.show([], 0, texts.commands.noFolder);
    const list = files(target, entries);
    this.show(list, target.from, list.length === 0 ? texts.commands.noFile : "");
  }

  private stopReading(): void {
    this.request?.abort.abort();
    this.request = null;
  }
}

function slashes(typed: string, { sessionId }: Choices): Suggestion[] {
  const usable = SLASH_COMMANDS.filter((command) => sessionId !== null || !command.inSession);
  const commands = rankMatches(usable, typed, (command) => command.name).filter((command) =>
    command.name.startsWith(typed),
  );
  return commands.map(({ name, takes }) => ({
    key: name,
    name: `/${name}${takes === "nothing" ? "" : ` ${texts.commands.takes[name] ?? ""}`}`,
    about: texts.commands.about[name],
    text: takes === "nothing" || takes === "optional" ? `/${name}` : `/${name} `,
    followUp: takes === "choice" ? "more" : takes === "words" ? "nothing" : "done",
  }));
}

function values(name: string, typed: string, choices: Choices): Suggestion[] {
  const now = choices.now[name] ?? null;
  const all = offered(name, choices);
  const suggestions = all.map((value) => ({
    key: `${name} ${value}`,
    name: value || texts.commands.default,
    about: (value || null) === now ? texts.commands.current : value ? "" : texts.commands.defaultAbout,
    text: value || texts.commands.default,
    followUp: "done" as const,
  }));
  return rankMatches(suggestions, typed, (suggestion) => suggestion.name).slice(0, MOST);
}

function offered(name: string, { profile }: Choices): readonly string[] {
  const { profiles: all, workspaces } = profiles.value;
  switch (name) {
    case "model":
      return models.value.models;
    case "workspace":
      return workspaces;
    case "personality":
      return ["", ...((all.find((entry) => entry.name === profile) ?? all[0])?.personalities ?? [])];
    case "effort":
      return ["", ...Object.keys(texts.settings.efforts)];
    default:
      return [];
  }
}

function files({ folder, typed }: FileTarget, entries: readonly Entry[]): Suggestion[] {
  // What begins with a dot is hidden, until somebody asks for it.
  const seen = entries.filter((entry) => !entry.name.startsWith(".") || typed.startsWith("."));
  const suggestions: Suggestion[] = rankMatches(seen, typed, (entry) => entry.name)
    .slice(0, MOST)
    .map(({ name, kind }) => {
      const path = folder + name;
      return kind === "folder" && !/\s/.test(path)
        ? { key: path, name: `${name}/`, about: texts.commands.folder, text: `@${path}/`, followUp: "more" }
        : { key: path, name, about: folder, text: `${quotedPath(path)} `, followUp: "nothing" };
    });
  if (folder === "" || typed !== "") return suggestions;
  const here: Suggestion = {
    key: `${folder}.`,
    name: folder,
    about: texts.commands.thisFolder,
    text: `${quotedPath(folder)} `,
    followUp: "nothing",
  };
  return [...suggestions, here];
}
