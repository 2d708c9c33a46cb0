/** One loop of frames for all bars that grow: it turns only while there is one. */

import { serverTime } from "../api/server_clock";

type Draw = (now: number) => void;

const drawn = new Set<Draw>();
let frame: number | null = null;

function turn(): void {
  const now = serverTime();
  for (const draw of drawn) draw(now);
  frame = drawn.size > 0 ? requestAnimationFrame(turn) : null;
}

export function eachFrame(draw: Draw): () => void {
  drawn.add(draw);
  draw(serverTime());
  frame ??= requestAnimationFrame(turn);
  return () => {
    drawn.delete(draw);
    if (drawn.size > 0 || frame === null) return;
    cancelAnimationFrame(frame);
    frame = null;
  };
}
