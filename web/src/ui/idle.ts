/** Work that can wait until the browser has nothing better to do. */

/** However busy the browser is, it is done by then. */
const LATEST_MS = 300;
/** Not every browser says when it is idle; a few frames later it most likely is. */
const SOON_MS = 50;

/** Does it when there is time for it; what is returned calls it off. */
export function whenIdle(work: () => void): () => void {
  if (!("requestIdleCallback" in globalThis)) {
    const timer = setTimeout(work, SOON_MS);
    return () => clearTimeout(timer);
  }
  const handle = requestIdleCallback(work, { timeout: LATEST_MS });
  return () => cancelIdleCallback(handle);
}
