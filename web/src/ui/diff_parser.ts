/** Patches and diffs as files with lines, whichever way they are written. Pure. */

export interface DiffLine {
  readonly kind: "same" | "add" | "remove" | "place";
  readonly text: string;
}

export interface FileDiff {
  readonly path: string;
  readonly change: "changed" | "added" | "deleted";
  readonly movedTo: string | null;
  readonly lines: readonly DiffLine[];
  readonly added: number;
  readonly removed: number;
}

interface Making {
  path: string;
  change: FileDiff["change"];
  movedTo: string | null;
  lines: DiffLine[];
}

const MARKED = /^\*\*\* (Update|Add|Delete) File: (.+?)\s*$/;
const MOVE = /^\*\*\* Move to: (.+?)\s*$/;
const OTHER_MARK = /^\*\*\* (Begin Patch|End Patch|End of File)\s*$/;
const CHANGES = { Update: "changed", Add: "added", Delete: "deleted" } as const;

/** The files of a patch or a unified diff; none if it is neither. */
export function parseDiff(text: string): FileDiff[] {
  const lines = text.replace(/\r\n/g, "\n").split("\n");
  if (lines.at(-1) === "") lines.pop();
  const making = lines.some((line) => MARKED.test(line)) ? marked(lines) : unified(lines);
  return making.map(counted);
}

function marked(lines: readonly string[]): Making[] {
  const files: Making[] = [];
  for (const line of lines) {
    const header = MARKED.exec(line);
    const move = MOVE.exec(line);
    const file = files.at(-1);
    if (header !== null) {
      const change = CHANGES[header[1] as keyof typeof CHANGES];
      files.push({ path: header[2]!, change, movedTo: null, lines: [] });
    } else if (file === undefined || OTHER_MARK.test(line)) continue;
    else if (move !== null) file.movedTo = move[1]!;
    else file.lines.push(lineOf(line));
  }
  return files;
}

function unified(lines: readonly string[]): Making[] {
  const files: Making[] = [];
  // How many lines of the hunk are still to come: inside it, "--- x" is a line that was removed.
  let before = 0;
  let after = 0;
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at]!;
    const next = lines[at + 1] ?? "";
    if (before <= 0 && after <= 0 && line.startsWith("--- ") && next.startsWith("+++ ")) {
      files.push(headed(nameOf(line), nameOf(next)));
      at += 1;
      continue;
    }
    const file = files.at(-1);
    if (file === undefined) continue;
    const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/.exec(line);
    if (hunk !== null) [before, after] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1)];
    else if (/^(# |diff |index |new file|deleted file|similarity |rename )/.test(line)) continue;
    else {
      before -= Number(!/^[+\\]/.test(line));
      after -= Number(!/^[-\\]/.test(line));
    }
    file.lines.push(lineOf(line));
  }
  return files;
}

function nameOf(line: string): string {
  return line.slice(4).split("\t", 1)[0]!.trim();
}

function headed(from: string, to: string): Making {
  const bare = (name: string): string => name.replace(/^[ab]\//, "");
  if (from === "/dev/null") return { path: bare(to), change: "added", movedTo: null, lines: [] };
  if (to === "/dev/null") return { path: bare(from), change: "deleted", movedTo: null, lines: [] };
  const movedTo = bare(from) === bare(to) ? null : bare(to);
  return { path: bare(from), change: "changed", movedTo, lines: [] };
}

function lineOf(line: string): DiffLine {
  if (line.startsWith("@@")) return { kind: "place", text: line };
  if (line.startsWith("+")) return { kind: "add", text: line.slice(1) };
  if (line.startsWith("-")) return { kind: "remove", text: line.slice(1) };
  if (line.startsWith("\\")) return { kind: "place", text: line };
  return { kind: "same", text: line.startsWith(" ") ? line.slice(1) : line };
}

function counted(file: Making): FileDiff {
  const number = (kind: DiffLine["kind"]): number => file.lines.filter((line) => line.kind === kind).length;
  return { ...file, added: number("add"), removed: number("remove") };
}

const LANGUAGES: Record<string, string> = {
  py: "python",
  pyi: "python",
  js: "javascript",
  mjs: "javascript",
  jsx: "javascript",
  ts: "typescript",
  tsx: "typescript",
  json: "json",
  md: "markdown",
  sh: "bash",
  bash: "bash",
  yml: "yaml",
  yaml: "yaml",
  toml: "ini",
  ini: "ini",
  cfg: "ini",
  html: "xml",
  xml: "xml",
  svg: "xml",
  css: "css",
  c: "c",
  h: "c",
  cpp: "cpp",
  cc: "cpp",
  hpp: "cpp",
  go: "go",
  rs: "rust",
  java: "java",
  sql: "sql",
  diff: "diff",
  patch: "diff",
};

/** What a file is written in, by its name; nothing if that is not known. */
export function languageOf(path: string): string {
  const end = /\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  return LANGUAGES[end] ?? "";
}
