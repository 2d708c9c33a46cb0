/** Task lists: `- [ ]` and `- [x]` at the beginning of an item are boxes, which nobody can click. */

import type { MarkdownIt } from "markdown-it";

const MARK = /^\[([ xX])\](?=\s|$)\s*/;

export function addTaskLists(markdown: MarkdownIt): void {
  markdown.core.ruler.after("inline", "task_lists", (state) => {
    const { tokens } = state;
    for (const [at, token] of tokens.entries()) {
      if (token.type !== "inline" || tokens[at - 2]?.type !== "list_item_open") continue;
      const first = token.children?.[0];
      const match = MARK.exec(first?.type === "text" ? first.content : "");
      if (match === null) continue;
      first!.content = first!.content.slice(match[0].length);
      const box = new state.Token("task_box", "", 0);
      box.content = match[1]!;
      token.children!.unshift(box);
      tokens[at - 2]!.attrSet("class", "markdown-task");
    }
  });
  markdown.renderer.rules.task_box = (tokens, index) =>
    `<input type="checkbox" disabled${tokens[index]!.content === " " ? "" : " checked"}> `;
}
