/**
 * The page in the frame that draws diagrams. It shows nothing to anybody: it gets the source of a
 * diagram and answers with a picture as text, or with why there is none.
 */

import mermaid from "mermaid";

interface Order {
  readonly id: string;
  readonly source: string;
  readonly dark: boolean;
}

const LONGEST = 50_000;

let last: Promise<unknown> = Promise.resolve();

async function draw({ id, source, dark }: Order): Promise<void> {
  try {
    mermaid.initialize({
      startOnLoad: false,
      securityLevel: "strict",
      suppressErrorRendering: true,
      theme: dark ? "dark" : "neutral",
      fontFamily: 'system-ui, -apple-system, "Segoe UI", sans-serif',
      maxTextSize: LONGEST,
      htmlLabels: false,
      flowchart: { htmlLabels: false },
    });
    const { svg } = await mermaid.render(`diagram-${id}`, source);
    answer({ id, ...asPicture(svg) });
  } catch (error) {
    // The first line says where and what; the rest draws it with dashes.
    const problem = error instanceof Error ? error.message.split("\n", 1)[0]! : String(error);
    answer({ id, problem });
  } finally {
    document.body.replaceChildren();
  }
}

/** With a size of its own: a picture cannot ask for the width of what it stands in. */
function asPicture(svg: string): { svg: string; width: number } {
  const box = document.createElement("div");
  box.innerHTML = svg;
  const root = box.querySelector("svg")!;
  const [, , width = 300, height = 150] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  root.setAttribute("width", String(Math.ceil(width)));
  root.setAttribute("height", String(Math.ceil(height)));
  root.removeAttribute("style");
  return { svg: new XMLSerializer().serializeToString(root), width: Math.ceil(width) };
}

function answer(words: object): void {
  window.parent.postMessage(words, location.origin);
}

window.addEventListener("message", ({ source, origin, data }: MessageEvent<Order>) => {
  if (source !== window.parent || origin !== location.origin) return;
  // One after another: they share the document that they are measured in.
  last = last.then(() => draw(data));
});
answer({ ready: true });
