/**
 * Footnotes: `[^name]` in a text, and `[^name]: what it says` on a line of its own. A reference is
 * shown as such at once, so that a reply whose notes come last reads the same while it streams.
 */

import type { MarkdownIt, StateBlock, StateInline } from "markdown-it";

type InlineRule = (state: StateInline, silent: boolean) => boolean;
type BlockRule = (state: StateBlock, startLine: number, endLine: number, silent: boolean) => boolean;

/** What an address of a footnote begins with; it leads to a place in the same text. */
export const NOTE_ADDRESS = "#note-";

const REFERENCE = /\[\^([^\]\s[]{1,60})\]/y;
const DEFINITION = /^\[\^([^\]\s[]{1,60})\]:[ \t]*/;

const reference: InlineRule = (state, silent) => {
  REFERENCE.lastIndex = state.pos;
  const match = REFERENCE.exec(state.src);
  if (match === null) return false;
  if (!silent) state.push("note_reference", "", 0).content = match[1]!;
  state.pos += match[0].length;
  return true;
};

/** It goes on until a blank line, or the next note. */
const definition: BlockRule = (state, startLine, endLine, silent) => {
  const lineOf = (line: number): string =>
    state.src.slice(state.bMarks[line]! + state.tShift[line]!, state.eMarks[line]);
  const match = DEFINITION.exec(lineOf(startLine));
  if (match === null) return false;
  if (silent) return true;
  const lines = [lineOf(startLine).slice(match[0].length)];
  let line = startLine + 1;
  for (; line < endLine && !state.isEmpty(line) && !DEFINITION.test(lineOf(line)); line++) lines.push(lineOf(line));
  const open = state.push("note_open", "p", 1);
  open.info = match[1]!;
  open.map = [startLine, line];
  open.block = true;
  const inline = state.push("inline", "", 0);
  inline.content = lines.join("\n").trim();
  inline.map = [startLine, line];
  inline.children = [];
  state.push("note_close", "p", -1).block = true;
  state.line = line;
  return true;
};

export function addFootnotes(markdown: MarkdownIt): void {
  markdown.inline.ruler.before("link", "note", reference);
  markdown.block.ruler.before("reference", "note", definition, { alt: ["paragraph"] });
  const { rules } = markdown.renderer;
  const { escapeHtml } = markdown.utils;
  const link = (name: string, kind: string): string =>
    `<sup class="markdown-note-${kind}"><a href="${NOTE_ADDRESS}${encodeURIComponent(name)}">${escapeHtml(name)}</a></sup>`;
  rules.note_reference = (tokens, index) => link(tokens[index]!.content, "reference");
  rules.note_open = (tokens, index) =>
    `<p class="markdown-note" dir="auto" tabindex="-1">${link(tokens[index]!.info, "back")} `;
  rules.note_close = () => "</p>\n";
}
