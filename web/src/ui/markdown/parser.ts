/** Markdown to HTML that the page's policy allows: no raw HTML, no styles, safe links only. */

import MarkdownIt from "markdown-it";
import { addFootnotes, NOTE_ADDRESS } from "./footnotes";
import { addMaths } from "./maths";
import { addTaskLists } from "./task_lists";
import { addWorkspaceFiles, FILE_ADDRESS, workspacePath } from "./workspace_files";

export const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false });

const ELSEWHERE = /^(https?:|mailto:)/i;
/** What may stand in the HTML: other sites, files of the workspace, footnotes, pictures of the server. */
export const SAFE_ADDRESS = new RegExp(
  `${ELSEWHERE.source}|^${FILE_ADDRESS}|^${NOTE_ADDRESS}|^api/sessions/[^/]+/pictures\\?`,
  "i",
);

markdown.validateLink = (address) => ELSEWHERE.test(address.trim()) || workspacePath(address.trim()) !== null;
addMaths(markdown);
addFootnotes(markdown);
addTaskLists(markdown);
addWorkspaceFiles(markdown);

/** Each block finds its own direction, by its first letter; what is inside follows it. */
markdown.core.ruler.push("direction", ({ tokens }) => {
  for (const token of tokens) {
    const isCell = token.type === "th_open" || token.type === "td_open";
    if (isCell || (token.level === 0 && token.nesting === 1)) token.attrSet("dir", "auto");
  }
});

const { rules } = markdown.renderer;

for (const cell of ["th_open", "td_open"]) {
  rules[cell] = (tokens, index, options, _env, self) => {
    const token = tokens[index]!;
    const side = /text-align:(\w+)/.exec(String(token.attrGet("style") ?? ""))?.[1];
    token.attrs = [["dir", "auto"]];
    if (side !== undefined) token.attrSet("class", `markdown-${side}`);
    return self.renderToken(tokens, index, options);
  };
}

// A wide table scrolls by itself, and by the keyboard too.
rules.table_open = () => '<div class="markdown-table" tabindex="0"><table dir="auto">';
rules.table_close = () => "</table></div>";
