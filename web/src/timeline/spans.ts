/** Stretches of time: laid together, and how long they are. Pure. */

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where at least one of them was, in order; gaps up to `near` are not worth showing. */
export function joinSpans(spans: readonly Span[], near = 0): Span[] {
  const sorted = [...spans].sort((a, b) => a.start - b.start);
  const joined: { start: number; end: number }[] = [];
  for (const { start, end } of sorted) {
    const last = joined.at(-1);
    if (last !== undefined && start <= last.end + near) last.end = Math.max(last.end, end);
    else joined.push({ start, end });
  }
  return joined;
}

/** For how long at least one of them was. */
export function coveredTime(spans: readonly Span[]): number {
  return joinSpans(spans).reduce((sum, { start, end }) => sum + end - start, 0);
}

/** For how long all of them were, one after another. */
export function totalTime(spans: readonly Span[]): number {
  return spans.reduce((sum, { start, end }) => sum + end - start, 0);
}
