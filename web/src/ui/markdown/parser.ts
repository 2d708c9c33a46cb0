/** Markdown to HTML that the page's policy allows: no raw HTML, no styles, safe links only. */

import MarkdownIt from "markdown-it";

export const markdown = new MarkdownIt({ html: false, linkify: true, breaks: false });

export const SAFE_ADDRESS = /^(https?:|mailto:)/i;

markdown.validateLink = (address) => SAFE_ADDRESS.test(address.trim());
// Pictures would be fetched from anywhere, and tell who reads; a link does not until it is clicked.
markdown.disable("image");

const { rules } = markdown.renderer;

rules.link_open = (tokens, index, options, _env, self) => {
  tokens[index]!.attrSet("target", "_blank");
  tokens[index]!.attrSet("rel", "noopener noreferrer");
  return self.renderToken(tokens, index, options);
};

for (const cell of ["th_open", "td_open"]) {
  rules[cell] = (tokens, index, options, _env, self) => {
    const token = tokens[index]!;
    const side = /text-align:(\w+)/.exec(String(token.attrGet("style") ?? ""))?.[1];
    token.attrs = side === undefined ? null : [["class", `markdown-${side}`]];
    return self.renderToken(tokens, index, options);
  };
}

// A wide table scrolls by itself, and by the keyboard too.
rules.table_open = () => '<div class="markdown-table" tabindex="0"><table>';
rules.table_close = () => "</table></div>";
