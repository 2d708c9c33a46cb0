/**
 * Maths in Markdown: `$…$`, `$$…$$`, `\(…\)` and `\[…\]`. This only finds it and writes its source
 * into the HTML; `math_view` draws it. Money is not maths: "$5 and $6" stays as it is.
 */

import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";

type InlineRule = (state: StateInline, silent: boolean) => boolean;
type BlockRule = (state: StateBlock, startLine: number, endLine: number, silent: boolean) => boolean;

const PAIRS = [
  { open: "$$", close: "$$", display: true },
  { open: "\\[", close: "\\]", display: true },
  { open: "\\(", close: "\\)", display: false },
] as const;

const inlineMaths: InlineRule = (state, silent) => {
  const { src, pos, posMax } = state;
  const pair = PAIRS.find(({ open }) => src.startsWith(open, pos));
  const open = pair?.open ?? "$";
  if (pair === undefined && src[pos] !== "$") return false;
  const start = pos + open.length;
  const end = pair === undefined ? endOfDollars(src, start, posMax) : src.indexOf(pair.close, start);
  if (end < 0 || end >= posMax || src.slice(start, end).trim() === "") return false;
  if (!silent) {
    const token = state.push(pair?.display ? "math_display" : "math_inline", "", 0);
    token.content = src.slice(start, end).trim();
  }
  state.pos = end + (pair?.close.length ?? 1);
  return true;
};

/** Where the dollar is that closes what one opened; -1 if these are amounts of money. */
function endOfDollars(src: string, start: number, most: number): number {
  if (start >= most || /\s/.test(src[start]!)) return -1;
  for (let at = start; at < most; at++) {
    if (src[at] === "\\") at++;
    else if (src[at] === "$") return /\s/.test(src[at - 1]!) || /\d/.test(src[at + 1] ?? "") ? -1 : at;
  }
  return -1;
}

const blockMaths: BlockRule = (state, startLine, endLine, silent) => {
  const first = lineOf(state, startLine);
  const pair = PAIRS.find(({ open, display }) => display && first.startsWith(open));
  if (pair === undefined) return false;
  const lines: string[] = [];
  let line = startLine;
  let rest = first.slice(pair.open.length);
  for (;;) {
    const end = rest.indexOf(pair.close);
    if (end >= 0) {
      // More words in the line of the end make it a part of a paragraph.
      if (rest.slice(end + pair.close.length).trim() !== "") return false;
      lines.push(rest.slice(0, end));
      break;
    }
    lines.push(rest);
    line += 1;
    if (line >= endLine) break;
    rest = lineOf(state, line);
  }
  if (silent) return true;
  const isClosed = line < endLine;
  const token = state.push(isClosed ? "math_block" : "math_open", "", 0);
  token.content = lines.join("\n").trim();
  token.map = [startLine, Math.min(line + 1, endLine)];
  token.block = true;
  state.line = Math.min(line + 1, endLine);
  return true;
};

function lineOf(state: StateBlock, line: number): string {
  return state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line]).trim();
}

export function addMaths(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("escape", "maths", inlineMaths);
  markdown.block.ruler.before("fence", "maths", blockMaths, { alt: ["paragraph", "reference", "blockquote", "list"] });
  const { rules } = markdown.renderer;
  const { escapeHtml } = markdown.utils;
  const inline = (content: string): string =>
    `<span class="markdown-math is-inline" dir="ltr">${escapeHtml(content)}</span>`;
  const display = (content: string): string =>
    `<span class="markdown-math is-display" dir="ltr">${escapeHtml(content.trim())}</span>`;
  rules.math_inline = (tokens, index) => inline(tokens[index]!.content);
  rules.math_display = (tokens, index) => display(tokens[index]!.content);
  rules.math_block = (tokens, index) => `<div>${display(tokens[index]!.content)}</div>\n`;
  // Its end has not come yet: the source is shown until it can be drawn.
  rules.math_open = (tokens, index) =>
    `<p><code class="markdown-math-open">${escapeHtml(tokens[index]!.content)}</code></p>\n`;
}
