/** The server's time as this browser knows it: events tell theirs in it. */

/** How far this browser's clock is ahead of the server's, in seconds. */
let ahead: number | null = null;

/** A live event came that was made at this moment; the fastest one tells the clocks apart best. */
export function noteServerTime(at: number): void {
  const seen = Date.now() / 1_000 - at;
  if (ahead === null || seen < ahead) ahead = seen;
}

export const serverTime = (milliseconds = Date.now()): number => milliseconds / 1_000 - (ahead ?? 0);
