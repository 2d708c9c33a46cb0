/** Stretches of time: laid together, and how long they are. Pure. */

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Where at least one of them was, in order; gaps up to `near` are not worth showing. */
export function united(spans: readonly Span[], near = 0): Span[] {
  const sorted = [...spans].sort((a, b) => a.start - b.start);
  const found: { start: number; end: number }[] = [];
  for (const { start, end } of sorted) {
    const last = found.at(-1);
    if (last !== undefined && start <= last.end + near) last.end = Math.max(last.end, end);
    else found.push({ start, end });
  }
  return found;
}

/** For how long at least one of them was. */
export function covered(spans: readonly Span[]): number {
  return united(spans).reduce((sum, { start, end }) => sum + end - start, 0);
}

/** For how long all of them were, one after another. */
export function summed(spans: readonly Span[]): number {
  return spans.reduce((sum, { start, end }) => sum + end - start, 0);
}
