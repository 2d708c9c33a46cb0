/** A text without its Markdown, for whoever pastes it where nothing reads that. Pure. */

import { markdown } from "./parser";

type Token = ReturnType<typeof markdown.parse>[number];

export function plainText(text: string): string {
  const writer = new Writer();
  for (const token of markdown.parse(text, {})) writer.write(token);
  return writer.text.trim();
}

class Writer {
  text = "";
  /** The next number of each list that is open; null: it has none. */
  private readonly lists: (number | null)[] = [];
  private mark = "";
  private cells: string[] | null = null;

  write(token: Token): void {
    switch (token.type) {
      case "bullet_list_open":
        this.lists.push(null);
        break;
      case "ordered_list_open":
        this.lists.push(Number(token.attrGet("start") ?? 1));
        break;
      case "bullet_list_close":
      case "ordered_list_close":
        this.lists.pop();
        if (this.lists.length === 0) this.text += "\n";
        break;
      case "list_item_open":
        this.mark = this.nextMark();
        break;
      case "inline":
        this.line(inlineText(token));
        break;
      default:
        this.writeOther(token);
    }
  }

  private writeOther(token: Token): void {
    if (token.type === "tr_open") this.cells = [];
    else if (token.type === "tr_close") {
      this.text += `${this.cells?.join("\t")}\n`;
      this.cells = null;
    } else if (token.type === "table_close") this.text += "\n";
    else if (token.nesting === 0 && token.content) this.text += `${token.content.replace(/\n$/, "")}\n\n`;
  }

  private line(words: string): void {
    if (this.cells !== null) this.cells.push(words);
    else this.text += `${this.mark}${words}${this.lists.length > 0 ? "\n" : "\n\n"}`;
    this.mark = "";
  }

  private nextMark(): string {
    const indent = "  ".repeat(this.lists.length - 1);
    const number = this.lists.at(-1);
    if (typeof number !== "number") return `${indent}- `;
    this.lists[this.lists.length - 1] = number + 1;
    return `${indent}${number}. `;
  }
}

function inlineText(token: Token): string {
  return (token.children ?? [])
    .map((child) => {
      if (child.type === "softbreak" || child.type === "hardbreak") return "\n";
      if (child.type === "note_reference") return `[${child.content}]`;
      if (child.type === "task_box") return child.content === " " ? "[ ] " : "[x] ";
      return child.content;
    })
    .join("");
}
