/** A text as Markdown: blocks that are rendered once, and one that may still grow. */

import { Component, createContext, createRef } from "preact";
import { useContext, useRef } from "preact/hooks";
import { Code } from "../code";
import { type Block, Blocks } from "./blocks";
import { clean } from "./clean";
import { Diagram } from "./diagram";
import { NOTE_ADDRESS } from "./footnotes";
import { drawMaths } from "./math_view";
import { pathOf } from "./workspace_files";

/** The files that a text may link to and show. */
export interface WorkspaceFiles {
  readonly picture: (path: string) => string;
  readonly open: (path: string) => void;
}

/** Of the session that a text belongs to; null: of none. */
export const FilesContext = createContext<WorkspaceFiles | null>(null);

/** What was read of a settled text is kept as long as its owner, so scrolling reads nothing anew. */
const blocksOf = new WeakMap<object, Blocks>();

export function Markdown({ text, whole, owner }: { text: string; whole: boolean; owner: object }) {
  const files = useContext(FilesContext);
  const mine = useRef<Blocks | null>(null);
  mine.current ??= blocksOf.get(owner) ?? new Blocks(clean, files === null ? {} : { picture: files.picture });
  if (whole) blocksOf.set(owner, mine.current);
  const blocks = mine.current.of(text, whole);
  return (
    <div class="markdown" onClick={(event) => follow(event, files)}>
      {blocks.map((block, index) => (
        <BlockView key={index} block={block} />
      ))}
    </div>
  );
}

/** Links that stay within the page: to a file of the workspace, and between a footnote and its place. */
function follow(event: MouseEvent & { currentTarget: HTMLElement }, files: WorkspaceFiles | null): void {
  const link = (event.target as Element).closest("a");
  const address = link?.getAttribute("href") ?? "";
  const path = pathOf(address);
  if (path !== null) {
    event.preventDefault();
    files?.open(path);
  } else if (address.startsWith(NOTE_ADDRESS)) {
    event.preventDefault();
    const ends = [...event.currentTarget.querySelectorAll(`a[href="${CSS.escape(address)}"]`)].filter(
      (end) => isNote(end) !== isNote(link!),
    );
    const end = ends[0]?.closest<HTMLElement>(".markdown-note") ?? (ends[0] as HTMLElement | undefined);
    end?.focus({ preventScroll: true });
    end?.scrollIntoView({ block: "center" });
  }
}

function isNote(link: Element): boolean {
  return link.closest(".markdown-note-back") !== null;
}

class BlockView extends Component<{ block: Block }> {
  private readonly box = createRef<HTMLDivElement>();

  override shouldComponentUpdate(next: { block: Block }): boolean {
    return next.block !== this.props.block;
  }

  override componentDidMount(): void {
    this.draw();
  }

  override componentDidUpdate(): void {
    this.draw();
  }

  private draw(): void {
    if (this.box.current === null) return;
    drawMaths(this.box.current);
    for (const picture of this.box.current.querySelectorAll("img")) {
      // What cannot be shown is still a link with the words that stand for it.
      picture.addEventListener("error", () => picture.replaceWith(picture.alt), { once: true });
    }
  }

  render({ block }: { block: Block }) {
    if (block.kind === "html") {
      return <div class="markdown-block" ref={this.box} dangerouslySetInnerHTML={{ __html: block.html }} />;
    }
    if (block.kind === "diagram") return <Diagram text={block.text} growing={block.open} />;
    return <Code text={block.text} language={block.language} growing={block.open} />;
  }
}
