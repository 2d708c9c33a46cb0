/** Values in config.toml by their paths, and changes that somebody else made there. Pure. */

export type Path = readonly string[];

/** What is to be at a path; undefined: nothing. */
export interface Edit {
  readonly path: Path;
  readonly value: unknown;
}

/** Both changed the same setting: what the file has now, and what was to be written. */
export interface Conflict extends Edit {
  readonly theirs: unknown;
}

export function isTable(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function valueAt(document: unknown, path: Path): unknown {
  let value = document;
  for (const name of path) {
    if (!isTable(value)) return undefined;
    value = value[name];
  }
  return value;
}

export function tableAt(document: unknown, path: Path): Readonly<Record<string, unknown>> {
  const value = valueAt(document, path);
  return isTable(value) ? value : {};
}

export function listAt(document: unknown, path: Path): readonly string[] {
  const value = valueAt(document, path);
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

/** A secret is shown as a mark, and never as itself. */
export const isSecret = (value: unknown): boolean => isTable(value) && "$secret" in value;

/** Values come from JSON, so two that look the same are the same; the order of a table says nothing. */
export function isSame(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other));
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isTable(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((name) => [name, sorted(value[name])]),
  );
}

/** Which of these edits meet a change that somebody else made since `before` was read. */
export function conflictsOf(before: unknown, now: unknown, edits: readonly Edit[]): readonly Conflict[] {
  return edits
    .map((edit) => ({ ...edit, theirs: valueAt(now, edit.path) }))
    .filter(({ path, value, theirs }) => !(isSame(theirs, valueAt(before, path)) || isSame(theirs, value)));
}

/** Lines of `NAME=value` as a table; a value that is shown as dots stays the secret that it was. */
export function parseVariables(
  lines: string,
  before: Readonly<Record<string, unknown>>,
  dots: string,
): { readonly table: Readonly<Record<string, unknown>> } | { readonly wrong: string } {
  const table: Record<string, unknown> = {};
  for (const line of lines.split("\n").map((text) => text.trim())) {
    if (line === "") continue;
    const equals = line.indexOf("=");
    const name = line.slice(0, equals).trim();
    if (equals < 1 || name === "") return { wrong: line };
    const value = line.slice(equals + 1).trim();
    table[name] = value === dots && isSecret(before[name]) ? before[name] : value;
  }
  return { table };
}

export function variableLines(table: Readonly<Record<string, unknown>>, dots: string): string {
  return Object.entries(table)
    .map(([name, value]) => `${name}=${isSecret(value) ? dots : String(value)}`)
    .join("\n");
}
