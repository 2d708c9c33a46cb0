/**
 * A text in top-level blocks, each rendered once. While a text grows, only its last block can
 * still change, so only that one is read again; the others keep their identity.
 */

import { markdown } from "./parser";
import { mendTail } from "./streaming_tail";
import type { RenderEnvironment } from "./workspace_files";

type Token = ReturnType<typeof markdown.parse>[number];

/** A diagram is code that can be drawn, once it is whole. */
interface CodeBlock {
  readonly kind: "code" | "diagram";
  readonly language: string;
  readonly text: string;
  readonly open: boolean;
}

export type Block = { readonly kind: "html"; readonly raw: string; readonly html: string } | CodeBlock;

interface Piece {
  readonly block: Block;
  /** The first line after it. */
  readonly end: number;
}

export class Blocks {
  private done: readonly Block[] = [];
  /** Where the part begins that may still change. */
  private from = 0;
  private seen = "";
  private settled = false;
  private all: readonly Block[] = [];

  /** HTML is shown as `clean` returns it. */
  constructor(
    private readonly clean: (html: string) => string,
    private readonly environment: RenderEnvironment = {},
  ) {}

  /** The blocks of the text; `whole` once nothing more comes. */
  of(text: string, whole: boolean): readonly Block[] {
    if (text === this.seen && whole === this.settled) return this.all;
    if (!text.startsWith(this.seen)) this.restart();
    this.seen = text;
    this.settled = whole;
    this.all = whole ? this.finish(text) : this.grow(text);
    return this.all;
  }

  private restart(): void {
    this.done = [];
    this.from = 0;
  }

  private grow(text: string): readonly Block[] {
    const rest = text.slice(this.from);
    const pieces = this.read(mendTail(rest), false);
    if (pieces.length > 1) {
      const settled = pieces.slice(0, -1);
      this.done = [...this.done, ...settled.map((piece) => piece.block)];
      this.from += lineStart(rest, settled.at(-1)!.end);
    }
    const last = pieces.at(-1);
    return last === undefined ? this.done : [...this.done, last.block];
  }

  /** Read as a whole, so that what refers to a later line is right; what is alike stays. */
  private finish(text: string): readonly Block[] {
    return this.read(text, true, this.all).map(({ block }) => block);
  }

  private read(text: string, whole: boolean, before: readonly Block[] = []): Piece[] {
    const env = { ...this.environment };
    const tokens = markdown.parse(text, env);
    const pieces: Piece[] = [];
    for (let start = 0; start < tokens.length; ) {
      const end = closing(tokens, start);
      const first = tokens[start]!;
      const last = end === tokens.length && !whole;
      const block = this.blockOf(tokens.slice(start, end), env, last, before[pieces.length]);
      pieces.push({ block, end: first.map?.[1] ?? 0 });
      start = end;
    }
    return pieces;
  }

  /** The known block itself if it says the same: then nothing is cleaned and drawn anew. */
  private blockOf(tokens: Token[], env: RenderEnvironment, open: boolean, before: Block | undefined): Block {
    const first = tokens[0]!;
    const isCode = first.type === "fence" || first.type === "code_block";
    const language = isCode ? /^[\w+#.-]*/.exec(first.info.trim())![0].toLowerCase() : "";
    if (language === "math" && !open) first.type = "math_block";
    else if (isCode) {
      const kind = language === "mermaid" ? "diagram" : "code";
      const block: CodeBlock = { kind, language, text: first.content.replace(/\n$/, ""), open };
      return before !== undefined && alike(before, block) ? before : block;
    }
    const raw = markdown.renderer.render(tokens, markdown.options, env);
    if (before?.kind === "html" && before.raw === raw) return before;
    return { kind: "html", raw, html: this.clean(raw) };
  }
}

function alike(a: Block, b: CodeBlock): boolean {
  return a.kind === b.kind && a.text === b.text && a.language === b.language && a.open === b.open;
}

function lineStart(text: string, line: number): number {
  let at = 0;
  for (let count = 0; count < line; count++) {
    const end = text.indexOf("\n", at);
    if (end < 0) return text.length;
    at = end + 1;
  }
  return at;
}

/** The index after the token that closes the block which begins here. */
function closing(tokens: readonly Token[], start: number): number {
  let depth = 0;
  for (let at = start; at < tokens.length; at++) {
    depth += tokens[at]!.nesting;
    if (depth === 0) return at + 1;
  }
  return tokens.length;
}
