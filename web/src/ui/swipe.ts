/** A finger that moves sideways: from the left edge it opens the list, to the left it closes it. */

/** Pixels from the edge at which a swipe that opens begins. */
const EDGE = 28;
/** Pixels that a finger has to move sideways. */
const FAR = 60;
const NARROW = "(max-width: 760px)";

interface Point {
  readonly x: number;
  readonly y: number;
}

/** True: the list opens; false: it closes; null: it was no such swipe. */
export function readSwipe(start: Point, end: Point, edge = EDGE): boolean | null {
  const [across, down] = [end.x - start.x, Math.abs(end.y - start.y)];
  if (Math.abs(across) < FAR || down > Math.abs(across) / 2) return null;
  if (across < 0) return false;
  return start.x <= edge ? true : null;
}

export function watchSwipes(show: (visible: boolean) => void): () => void {
  let start: Point | null = null;
  const point = (touch: Touch): Point => ({ x: touch.clientX, y: touch.clientY });
  const onStart = (event: TouchEvent): void => {
    start = event.touches.length === 1 ? point(event.touches[0]!) : null;
  };
  const onEnd = (event: TouchEvent): void => {
    const touch = event.changedTouches[0];
    if (start === null || touch === undefined || !matchMedia(NARROW).matches) return;
    const visible = readSwipe(start, point(touch));
    start = null;
    if (visible !== null) show(visible);
  };
  document.addEventListener("touchstart", onStart, { passive: true });
  document.addEventListener("touchend", onEnd, { passive: true });
  return () => {
    document.removeEventListener("touchstart", onStart);
    document.removeEventListener("touchend", onEnd);
  };
}
