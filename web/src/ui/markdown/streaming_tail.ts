/**
 * The end of a text that still streams, so that it reads well at every moment: marks that are open
 * are closed, links that are half there show their words, and what may become something else with
 * the next letter waits for it. Pure; the whole text is read as it is in the end.
 */

const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const ITEM = /^\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]?\]?\s?)?/;

/** The text with its last words mended. */
export function mendTail(text: string): string {
  if (isInFence(text)) return text;
  const start = lastRunStart(text);
  const run = text.slice(start);
  const withoutRule = withoutHalfLine(text, run);
  if (withoutRule !== null) return withoutRule;
  const table = mendTable(run);
  return text.slice(0, start) + (table ?? closeMarks(run));
}

function isInFence(text: string): boolean {
  let open: string | null = null;
  for (const line of text.split("\n")) {
    const fence = FENCE.exec(line)?.[1];
    if (fence === undefined) continue;
    if (open === null) open = fence;
    else if (fence[0] === open[0] && fence.length >= open.length && line.trim() === fence) open = null;
  }
  return open !== null;
}

/** Where the words begin that belong together: after a blank line, or with an item, a heading, a quote. */
function lastRunStart(text: string): number {
  let start = text.length;
  while (start > 0) {
    const before = text.lastIndexOf("\n", start - 2) + 1;
    const line = text.slice(before, start);
    if (line.trim() === "" && start !== text.length) return start;
    start = before;
    const item = ITEM.exec(line) ?? /^\s*(?:#{1,6}\s+|>\s?)/.exec(line);
    if (item !== null) return start + item[0].length;
  }
  return start;
}

/** A last line of dashes may become a list or a rule, and would make a heading of the line above. */
function withoutHalfLine(text: string, run: string): string | null {
  const at = text.lastIndexOf("\n");
  const last = text.slice(at + 1);
  const isAlone = /^\s*(?:[-=*+_#>]{1,3}|\d{1,3}[.)]?|[`~]{1,2}|\[\^?[^\]\s]*\]?:?)\s*$/.test(last);
  if (!isAlone || (run.trim() !== last.trim() && !/^\s*[-=]+\s*$/.test(last))) return null;
  return /^\s*\d+\s*$/.test(last) ? null : text.slice(0, at + 1);
}

/** The first lines of a table, before they are one. */
function mendTable(run: string): string | null {
  const lines = run.trimEnd().split("\n");
  const [head = "", rule = ""] = lines;
  if (!/^\s*\|/.test(head) || lines.length > 2 || !/^[\s|:-]*$/.test(rule)) return null;
  if (head.trim() === "|") return "";
  const row = closeMarks(head.trim().replace(/\|$/, "")).trimEnd();
  return `${row} |\n${"|---".repeat(row.split("|").length - 1)}|\n`;
}

interface Scan {
  out: string;
  readonly open: string[];
}

/** Closes what is open at the end of these words. */
function closeMarks(run: string): string {
  const scan: Scan = { out: "", open: [] };
  let at = 0;
  while (at < run.length) at = next(run, at, scan);
  return trimEnd(scan);
}

/** Reads one piece, and says where the next one begins. */
function next(run: string, at: number, scan: Scan): number {
  const char = run[at]!;
  if (char === "\\") return escaped(run, at, scan);
  if (char === "`") return code(run, at, scan);
  if (char === "[" || (char === "!" && run[at + 1] === "[")) return link(run, at, scan);
  if (char === "*" || char === "_" || char === "~") return emphasis(run, at, scan);
  if (run.startsWith("$$", at)) return between(run, at, "$$", "$$", scan);
  scan.out += char;
  return at + 1;
}

function escaped(run: string, at: number, scan: Scan): number {
  const opens = run.slice(at, at + 2);
  if (opens === "\\(") return between(run, at, opens, "\\)", scan);
  if (opens === "\\[") return between(run, at, opens, "\\]", scan);
  // A lone backslash at the end may become any of these.
  if (opens !== "\\") scan.out += opens;
  return at + 2;
}

/** Maths: whole, or its source without the mark until its end is there. */
function between(run: string, at: number, open: string, close: string, scan: Scan): number {
  const end = run.indexOf(close, at + open.length);
  if (end >= 0) {
    scan.out += run.slice(at, end + close.length);
    return end + close.length;
  }
  const rest = run
    .slice(at + open.length)
    .replace(/[\\$]$/, "")
    .trim();
  if (rest !== "") scan.out += `\`${rest.replaceAll("`", "")}\``;
  return run.length;
}

function code(run: string, at: number, scan: Scan): number {
  const marks = /^`+/.exec(run.slice(at))![0];
  for (let end = run.indexOf(marks, at + marks.length); end >= 0; end = run.indexOf(marks, end + 1)) {
    if (run[end - 1] === "`" || run[end + marks.length] === "`") continue;
    scan.out += run.slice(at, end + marks.length);
    return end + marks.length;
  }
  const rest = run.slice(at + marks.length).replace(/`+$/, "");
  if (rest.trim() !== "") scan.out += `${marks}${rest}${rest.endsWith(" ") ? " " : ""}${marks}`;
  return run.length;
}

/** A link that is whole stays; of one that is not, its words. Of a picture nothing, until it is whole. */
function link(run: string, at: number, scan: Scan): number {
  const isPicture = run[at] === "!";
  const start = at + (isPicture ? 2 : 1);
  const end = closing(run, start);
  if (end >= 0 && run[end + 1] !== undefined && run[end + 1] !== "(") {
    scan.out += run.slice(at, start);
    return start;
  }
  const address = end < 0 || run[end + 1] !== "(" ? -1 : run.indexOf(")", end + 2);
  if (address >= 0) {
    scan.out += run.slice(at, address + 1);
    return address + 1;
  }
  const words = run.slice(start, end < 0 ? run.length : end);
  if (!isPicture && !words.startsWith("^")) scan.out += closeMarks(words);
  return run.length;
}

function closing(run: string, start: number): number {
  let depth = 1;
  for (let at = start; at < run.length; at++) {
    if (run[at] === "\\") at++;
    else if (run[at] === "[") depth++;
    else if (run[at] === "]" && --depth === 0) return at;
  }
  return -1;
}

function emphasis(run: string, at: number, scan: Scan): number {
  const char = run[at]!;
  const marks = new RegExp(`^\\${char}{1,3}`).exec(run.slice(at))![0];
  const end = at + marks.length;
  const before = run[at - 1] ?? " ";
  const after = run[end] ?? " ";
  const isInWord = /\w/.test(before) && /\w/.test(after);
  if (char === "~" ? marks.length === 2 : !(char === "_" && isInWord)) {
    const top = scan.open.at(-1);
    if (top === marks && !/\s/.test(before)) scan.open.pop();
    else if (!/\s/.test(after)) scan.open.push(marks);
  }
  scan.out += marks;
  return end;
}

/** Without marks that say nothing yet, and with those closed that are open. */
function trimEnd({ out, open }: Scan): string {
  let text = out;
  const half = /(?<![*_~])([*_~])\1{0,2}$/.exec(text);
  const top = open.at(-1) ?? "";
  if (half !== null) {
    const isOpening = /(?:^|\s)$/.test(text.slice(0, half.index));
    // "**bold*" waits for its second star; a mark after a space waits for its word.
    if (isOpening || (top[0] === half[1] && half[0].length < top.length)) text = text.slice(0, half.index);
  }
  if (open.length === 0) return text;
  const space = /\s*$/.exec(text)![0];
  return text.slice(0, text.length - space.length) + [...open].reverse().join("") + space;
}
