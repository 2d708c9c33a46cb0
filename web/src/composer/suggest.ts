/** What can be completed where the caret stands: commands, their values, files. One per composer. */

import { signal } from "@preact/signals";
import * as keryx from "../api/keryx";
import { asProblem } from "../api/problem";
import type { Entry } from "../api/shapes";
import { models, profiles } from "../state/app";
import { texts } from "../texts";
import { matching, SLASHES, wanted, written, type Wanted } from "./reading";

const MOST = 60;

export interface Suggestion {
  readonly key: string;
  readonly name: string;
  readonly about: string;
  /** What stands in the place of what was typed. */
  readonly text: string;
  /** done: it says all, and can be done at once. more: what comes next is completed too. */
  readonly then: "done" | "more" | "nothing";
}

/** What the values are that a command chooses from, and which one holds now. */
export interface Choices {
  readonly sessionId: string | null;
  /** A session that works in the same folder, if there is one: files are seen through a session. */
  readonly files: string | null;
  readonly profile: string | null;
  readonly now: Readonly<Partial<Record<string, string | null>>>;
}

export class Suggest {
  readonly list = signal<readonly Suggestion[]>([]);
  readonly at = signal(0);
  /** Why nothing is offered for what was typed after an `@`. */
  readonly says = signal("");
  private from = 0;
  private asked: AbortController | null = null;
  private folder: { path: string; entries: readonly Entry[]; missing?: boolean } | null = null;
  private closed: string | null = null;

  /** The text or the caret has changed. */
  look(text: string, caret: number, choices: Choices): void {
    if (this.closed !== null && this.closed !== text) this.closed = null;
    const found = this.closed === null ? wanted(text, caret) : null;
    this.asked?.abort();
    if (found?.what !== "file") this.folder = null;
    if (found === null) return this.show([], 0);
    if (found.what === "slash") this.show(slashes(found.typed, choices), found.from);
    else if (found.what === "choice") this.show(values(found.name, found.typed, choices), found.from);
    else void this.lookForFiles(found, choices.files);
  }

  move(by: number): void {
    const count = this.list.value.length;
    if (count > 0) this.at.value = (this.at.value + by + count) % count;
  }

  /** Until something else is typed. */
  close(text: string): void {
    this.closed = text;
    this.asked?.abort();
    this.show([], 0);
  }

  get chosen(): Suggestion | null {
    return this.list.value[this.at.value] ?? null;
  }

  /** The text with the suggestion in it, and where the caret stands then. */
  taken(suggestion: Suggestion, text: string, caret: number): { text: string; caret: number } {
    const before = text.slice(0, this.from) + suggestion.text;
    return { text: before + text.slice(caret), caret: before.length };
  }

  private show(list: readonly Suggestion[], from: number, says = ""): void {
    const kept = list.findIndex((each) => each.key === this.chosen?.key);
    this.from = from;
    this.list.value = list;
    this.at.value = Math.max(0, kept);
    this.says.value = says;
  }

  private async lookForFiles(found: Wanted & { what: "file" }, sessionId: string | null): Promise<void> {
    if (sessionId === null) return this.show([], 0, texts.commands.noFilesYet);
    if (this.folder?.path !== found.folder) {
      const abort = new AbortController();
      this.asked = abort;
      try {
        const shown = await keryx.look(sessionId, found.folder || ".", abort.signal);
        this.folder = { path: found.folder, entries: shown.kind === "folder" ? shown.entries : [] };
      } catch (error) {
        const missing = asProblem(error).kind === "not_found";
        if (!abort.signal.aborted) this.folder = { path: found.folder, entries: [], missing };
      }
      if (abort.signal.aborted) return;
    }
    if (this.folder?.missing) return this.show([], 0, texts.commands.noFolder);
    const list = files(found, this.folder?.entries ?? []);
    this.show(list, found.from, list.length === 0 ? texts.commands.noFile : "");
  }
}

function slashes(typed: string, { sessionId }: Choices): Suggestion[] {
  const usable = SLASHES.filter((each) => sessionId !== null || !each.inSession);
  const found = matching(usable, typed, (each) => each.name).filter((each) => each.name.startsWith(typed));
  return found.map(({ name, takes }) => ({
    key: name,
    name: `/${name}${takes === "nothing" ? "" : ` ${texts.commands.takes[name] ?? ""}`}`,
    about: texts.commands.about[name],
    text: takes === "nothing" ? `/${name}` : `/${name} `,
    then: takes === "nothing" ? "done" : takes === "choice" ? "more" : "nothing",
  }));
}

function values(name: string, typed: string, choices: Choices): Suggestion[] {
  const now = choices.now[name] ?? null;
  const all = offered(name, choices);
  const known = all.map((value) => ({
    key: `${name} ${value}`,
    name: value || texts.commands.default,
    about: (value || null) === now ? texts.commands.current : value ? "" : texts.commands.defaultAbout,
    text: value || texts.commands.default,
    then: "done" as const,
  }));
  return matching(known, typed, (each) => each.name).slice(0, MOST);
}

function offered(name: string, { profile }: Choices): readonly string[] {
  const { profiles: all, workspaces } = profiles.value;
  switch (name) {
    case "model":
      return models.value.models;
    case "workspace":
      return workspaces;
    case "personality":
      return ["", ...(all.find((each) => each.name === profile) ?? all[0])?.personalities ?? []];
    case "effort":
      return ["", ...Object.keys(texts.settings.efforts)];
    default:
      return [];
  }
}

function files({ folder, typed }: Wanted & { what: "file" }, entries: readonly Entry[]): Suggestion[] {
  // What begins with a dot is hidden, until somebody asks for it.
  const seen = entries.filter((each) => !each.name.startsWith(".") || typed.startsWith("."));
  const found: Suggestion[] = matching(seen, typed, (each) => each.name)
    .slice(0, MOST)
    .map(({ name, kind }) => {
      const path = folder + name;
      return kind === "folder" && !/\s/.test(path)
        ? { key: path, name: `${name}/`, about: texts.commands.folder, text: `@${path}/`, then: "more" }
        : { key: path, name, about: folder, text: `${written(path)} `, then: "nothing" };
    });
  if (folder === "" || typed !== "") return found;
  const here: Suggestion = {
    key: `${folder}.`,
    name: folder,
    about: texts.commands.thisFolder,
    text: `${written(folder)} `,
    then: "nothing",
  };
  return [...found, here];
}
