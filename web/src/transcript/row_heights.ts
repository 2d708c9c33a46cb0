/**
 * Where each row of a long list begins, from heights that were measured or guessed.
 *
 * Sums are kept in a tree, so one row that grows costs the logarithm of the list's length.
 */

/** Heights that are known of rows which are not in the list now. */
const MOST_STRANGE = 300;

export class Heights {
  private keys: readonly string[] = [];
  private readonly index = new Map<string, number>();
  private readonly measured = new Map<string, number>();
  /** What each row counts for now; a guess must not change while it is part of the sums. */
  private counted = new Float64Array(0);
  private tree = new Float64Array(1);

  constructor(private readonly guess: (key: string) => number) {}

  get length(): number {
    return this.keys.length;
  }

  get total(): number {
    return this.before(this.keys.length);
  }

  setKeys(keys: readonly string[]): void {
    if (keys === this.keys) return;
    this.keys = keys;
    this.index.clear();
    this.counted = Float64Array.from(keys, (key) => this.measured.get(key) ?? this.guess(key));
    this.tree = new Float64Array(keys.length + 1);
    this.tree.set(this.counted, 1);
    for (const [at, key] of keys.entries()) this.index.set(key, at);
    for (let at = 1; at <= keys.length; at++) {
      const parent = at + (at & -at);
      if (parent <= keys.length) this.tree[parent]! += this.tree[at]!;
    }
    if (this.measured.size > keys.length + MOST_STRANGE) this.forget();
  }

  indexOf(key: string): number {
    return this.index.get(key) ?? -1;
  }

  keyAt(index: number): string | undefined {
    return this.keys[index];
  }

  /** True if that is another height than the one counted with so far. */
  measure(key: string, height: number): boolean {
    const at = this.index.get(key);
    this.measured.set(key, height);
    if (at === undefined) return false;
    const oldHeight = this.counted[at]!;
    if (Math.abs(oldHeight - height) < 0.5) return false;
    this.counted[at] = height;
    for (let node = at + 1; node <= this.keys.length; node += node & -node) this.tree[node]! += height - oldHeight;
    return true;
  }

  /** Where the row with this index begins. */
  before(index: number): number {
    let sum = 0;
    for (let node = Math.min(index, this.keys.length); node > 0; node -= node & -node) sum += this.tree[node]!;
    return sum;
  }

  /** The row that covers this height. */
  at(offset: number): number {
    let node = 0;
    let rest = offset;
    for (let bit = highestBit(this.keys.length); bit > 0; bit >>= 1) {
      const next = node + bit;
      if (next <= this.keys.length && this.tree[next]! <= rest) {
        node = next;
        rest -= this.tree[next]!;
      }
    }
    return Math.min(node, Math.max(0, this.keys.length - 1));
  }

  private forget(): void {
    for (const key of this.measured.keys()) if (!this.index.has(key)) this.measured.delete(key);
  }
}

function highestBit(value: number): number {
  return value === 0 ? 0 : 1 << (31 - Math.clz32(value));
}
