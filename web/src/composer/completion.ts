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

export class Completion {
  readonly list = signal<readonly Suggestion[]>([]);
  readonly at = signal(0);
  /** Why nothing is offered for what was typed after an `@`. */
  readonly says = signal("");
  private from = 0;
  private request: AbortController | null = null;
  private folder: { path: string; entries: readonly Entry[]; missing?: boolean } | null = null;
  private closed: string | null = null;

  /** The text or the caret has changed. */
  look(text: string, caret: number, choices: Choices): void {
    if (this.closed !== null && this.closed !== text) this.closed = null;
    const target = this.closed === null ? completionTarget(text, caret) : null;
    this.request?.abort();
    if (target?.what !== "file") this.folder = null;
    if (target === null) return this.show([], 0);
    if (target.what === "slash") this.show(slashes(target.typed, choices), target.from);
    else if (target.what === "choice") this.show(values(target.name, target.typed, choices), target.from);
    else void this.lookForFiles(target, choices.files);
  }

  move(by: number): void {
    const count = this.list.value.length;
    if (count > 0) this.at.value = (this.at.value + by + count) % count;
  }

  /** Until something else is typed. */
  close(text: string): void {
    this.closed = text;
    this.request?.abort();
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
  }

  private async lookForFiles(target: CompletionTarget & { what: "file" }, sessionId: string | null): Promise<void> {
    if (sessionId === null) return this.show([], 0, texts.commands.noFilesYet);
    if (this.folder?.path !== target.folder) {
      const abort = new AbortController();
      this.request = abort;
      try {
        const shown = await keryx.readPath(sessionId, target.folder || ".", abort.signal);
        this.folder = { path: target.folder, entries: shown.kind === "folder" ? shown.entries : [] };
      } catch (error) {
        const missing = asProblem(error).kind === "not_found";
        if (!abort.signal.aborted) this.folder = { path: target.folder, entries: [], missing };
      }
      if (abort.signal.aborted) return;
    }
    if (this.folder?.missing) return this.show([], 0, texts.commands.noFolder);
    const list = files(target, this.folder?.entries ?? []);
    this.show(list, target.from, list.length === 0 ? texts.commands.noFile : "");
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
    text: takes === "nothing" ? `/${name}` : `/${name} `,
    followUp: takes === "nothing" ? "done" : takes === "choice" ? "more" : "nothing",
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

function files({ folder, typed }: CompletionTarget & { what: "file" }, entries: readonly Entry[]): Suggestion[] {
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
