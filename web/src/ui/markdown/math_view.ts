/** Draws the maths in a block, with a library and fonts that are fetched when the first maths is shown. */

import { texts } from "../../texts";

const MOST_KEPT = 300;
const drawn = new Map<string, Node>();

type Library = typeof import("./maths_library");
let library: Library | null = null;
let loading: Promise<Library> | null = null;

export function drawMaths(block: HTMLElement): void {
  const places = [...block.querySelectorAll<HTMLElement>(".markdown-math:not(.is-drawn)")];
  if (places.length === 0) return;
  // At once where it can be: a block that grows would flicker.
  if (library !== null) return draw(library, places);
  loading ??= import("./maths_library");
  void loading.then(
    (loaded) => {
      library = loaded;
      draw(loaded, places);
    },
    () => {
      // Its source stays readable; the next block tries again.
      loading = null;
    },
  );
}

function draw({ render }: Library, places: readonly HTMLElement[]): void {
  for (const place of places) {
    if (!place.isConnected || place.classList.contains("is-drawn")) continue;
    const source = place.textContent ?? "";
    const display = place.classList.contains("is-display");
    const key = `${display} ${source}`;
    const cached = drawn.get(key);
    const node = cached ?? render(source, display);
    if (cached === undefined) remember(key, node);
    place.replaceChildren(node.cloneNode(true));
    place.classList.add("is-drawn");
    if (display) {
      place.tabIndex = 0;
      place.setAttribute("role", "group");
      place.setAttribute("aria-label", texts.maths.label);
    }
  }
}

function remember(key: string, node: Node): void {
  drawn.set(key, node);
  if (drawn.size > MOST_KEPT) drawn.delete(drawn.keys().next().value!);
}
