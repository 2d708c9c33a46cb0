/** What stands for the earlier part of a session: pages of Markdown, in a box that scrolls by itself. */

import { texts } from "../texts";
import { Markdown } from "./markdown/markdown";

/** The owner is what the text belongs to: it is read once for as long as that is there. */
export function SummaryText({ text, owner }: { text: string; owner: object }) {
  return (
    <div class="summary-text" role="group" aria-label={texts.compaction.summary} tabIndex={0}>
      <Markdown text={text} whole owner={owner} />
    </div>
  );
}
