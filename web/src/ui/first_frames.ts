/**
 * The first frames belong to the session that the address names. What can wait, such as the list of
 * sessions, streams and what a session can be set to, waits for them.
 */

/** One draws, one paints, and one more may paint what the first one measured. */
const FRAMES = 3;
/** A tab that is hidden meanwhile has no frames. */
const LATEST_MS = 1_000;

let past: Promise<void> = Promise.resolve();

/** Called before the first drawing, if there will be something to see in it. */
export function waitForFirstFrames(): void {
  if (document.hidden) return;
  past = new Promise((resolve) => {
    const next = (left: number): void => {
      if (left === 0) resolve();
      else requestAnimationFrame(() => next(left - 1));
    };
    next(FRAMES);
    setTimeout(resolve, LATEST_MS);
  });
}

/** At once, if they are past. */
export const firstFramesPast = (): Promise<void> => past;
