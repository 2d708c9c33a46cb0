/** Work that can wait until the browser has nothing better to do. */

import { firstFramesPast } from "./first_frames";

/** However busy the browser is, it is done by then. */
const LATEST_MS = 300;
/** Not every browser says when it is idle; a few frames later it most likely is. */
const SOON_MS = 50;

/** Does it when there is time for it, and the first frames are past; what is returned calls it off. */
export function whenIdle(work: () => void): () => void {
  let callOff: (() => void) | null = null;
  let isCalledOff = false;
  void firstFramesPast().then(() => {
    if (!isCalledOff) callOff = soon(work);
  });
  return () => {
    isCalledOff = true;
    callOff?.();
  };
}

function soon(work: () => void): () => void {
  if (!("requestIdleCallback" in globalThis)) {
    const timer = setTimeout(work, SOON_MS);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(work, { timeout: LATEST_MS });
  return () => cancelIdleCallback(handle);
}
