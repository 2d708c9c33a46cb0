/** Maths as elements of the page: a chunk of its own, with its styles and fonts. */

import katex from "katex";
import "katex/dist/katex.min.css";

/** Larger formulas would cost seconds; their source is shown. */
const LONGEST = 5_000;
const MOST_EXPANDED = 1_000;

/** What cannot be read is shown as its source. */
export function render(source: string, displayMode: boolean): Node {
  const box = document.createElement("span");
  if (source.length > LONGEST) {
    box.textContent = source;
    return box;
  }
  // Into elements, never as HTML: the page's policy forbids styles in HTML. No links, no pictures.
  katex.render(source, box, {
    displayMode,
    throwOnError: false,
    strict: "ignore",
    trust: false,
    maxSize: 50,
    maxExpand: MOST_EXPANDED,
    errorColor: "currentcolor",
  });
  return box;
}
