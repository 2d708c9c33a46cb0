/** A text as Markdown: blocks that are rendered once, and one that may still grow. */

import { Component } from "preact";
import { useRef } from "preact/hooks";
import { Code } from "../code";
import { type Block, Blocks } from "./blocks";
import { clean } from "./clean";

/** What was read of a settled text is kept as long as its owner, so scrolling reads nothing anew. */
const blocksOf = new WeakMap<object, Blocks>();

export function Markdown({ text, whole, owner }: { text: string; whole: boolean; owner: object }) {
  const mine = useRef<Blocks | null>(null);
  mine.current ??= blocksOf.get(owner) ?? new Blocks(clean);
  if (whole) blocksOf.set(owner, mine.current);
  const blocks = mine.current.of(text, whole);
  return (
    <div class="markdown">
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </div>
  );
}

class BlockView extends Component<{ block: Block }> {
  override shouldComponentUpdate(next: { block: Block }): boolean {
    return next.block !== this.props.block;
  }

  render({ block }: { block: Block }) {
    if (block.kind === "code") return <Code text={block.text} language={block.language} growing={block.open} />;
    return <div class="markdown-block" dangerouslySetInnerHTML={{ __html: block.html }} />;
  }
}
