/**
 * Shows the part of a long list that is in view. It keeps the reader's place while rows above
 * are added, measured or change, and follows the end while the reader is there.
 *
 * While somebody scrolls it asks the document for nothing that it knows: each such question makes
 * the browser lay out everything at once, and once more for the frame.
 */

import { effect, type Signal, signal } from "@preact/signals";
import { whenIdle } from "../ui/idle";
import { Heights } from "./row_heights";

/** Rows this far outside the view are kept ready, in pixels; once the view itself has been painted. */
const MARGIN = 700;
/** Closer to the end than this counts as being there. */
const NEAR_END = 24;
/** Closer to the first or last row than this, more rows are asked for. */
const NEAR_EDGE = 1_600;

export interface List {
  keys: Signal<readonly string[]>;
  /** How high a row may be that was not seen yet. */
  guess: (key: string) => number;
  /** Whether the last row is the end, so that it can be followed. */
  hasEnd: () => boolean;
  /** The view comes close to the first row, or to a last one that is not the end. */
  onNear: (edge: "first" | "last") => void;
}

interface Parts {
  box: HTMLElement;
  above: HTMLElement;
  below: HTMLElement;
}

export class Scroller {
  readonly shown = signal<readonly string[]>([]);
  /** Whether the end is followed. */
  readonly atEnd = signal(true);
  /** Whether it is in view, followed or not: then there is no way to it. */
  readonly endSeen = signal(true);
  private readonly heights: Heights;
  private readonly names = new WeakMap<Element, string>();
  private readonly observer: ResizeObserver;
  private readonly stopFollowing: () => void;
  private keys: readonly string[] = [];
  private from = 0;
  private to = 0;
  private parts: Parts | null = null;
  private anchor: { key: string; inset: number } | null = null;
  private lastTop = 0;
  private lastHeight = 0;
  /** Until it is measured: never less than it is, and known without a layout. */
  private viewHeight = innerHeight;
  private margin = 0;
  private isWidened = false;
  private isWhole = false;

  constructor(private readonly list: List) {
    this.heights = new Heights(list.guess);
    this.observer = new ResizeObserver((entries) => this.resized(entries));
    this.stopFollowing = effect(() => {
      this.keys = list.keys.value;
      if (!list.hasEnd()) this.atEnd.value = false;
      this.heights.setKeys(this.keys);
      this.refresh();
    });
  }

  attach(parts: Parts): void {
    this.parts = parts;
    this.observer.observe(parts.box);
    this.place();
    this.viewHeight = parts.box.clientHeight;
    this.refresh();
    whenIdle(() => this.widen());
  }

  private widen(): void {
    if (this.parts === null) return;
    this.isWidened = true;
    this.margin = MARGIN;
    this.refresh();
  }

  /** Shows all rows, as paper needs them, or again those in view. */
  showAll(whole: boolean): void {
    this.isWhole = whole;
    this.refresh();
  }

  /** Whether every row that is to be shown is in the document. */
  get isDrawn(): boolean {
    return this.parts?.box.querySelectorAll(".transcript-row").length === this.shown.peek().length;
  }

  close(): void {
    this.stopFollowing();
    this.observer.disconnect();
    this.parts = null;
  }

  observe(element: Element, key: string): () => void {
    this.names.set(element, key);
    this.observer.observe(element);
    return () => this.observer.unobserve(element);
  }

  /** The row at the top of the view; null while the end is followed. */
  get reader(): string | null {
    return this.atEnd.peek() ? null : (this.anchor?.key ?? null);
  }

  /** The reader works on something here: it stays where it is, whatever grows. */
  hold(): void {
    if (!this.atEnd.peek() || this.parts === null) return;
    this.remember(this.parts.box.scrollTop);
    this.atEnd.value = false;
  }

  toEnd(): void {
    this.atEnd.value = true;
    this.refresh();
    this.place();
  }

  /** Brings this row into view; false if it is not in the list. */
  seek(key: string): boolean {
    if (this.heights.indexOf(key) < 0) return false;
    this.anchor = { key, inset: -NEAR_END };
    this.atEnd.value = false;
    this.refresh();
    this.place();
    return true;
  }

  scrolled(): void {
    if (this.parts === null) return;
    const { scrollTop, scrollHeight, clientHeight } = this.parts.box;
    const left = scrollHeight - scrollTop - clientHeight;
    const close = left <= 2 || (left < NEAR_END && scrollTop >= this.lastTop - 1);
    if (close && this.list.hasEnd()) this.atEnd.value = true;
    // A list that shrinks moves the view as well, and nobody has left the end by that.
    else if (scrollTop < this.lastTop - 1 && scrollHeight >= this.lastHeight) this.atEnd.value = false;
    this.lastTop = scrollTop;
    this.lastHeight = scrollHeight;
    this.viewHeight = clientHeight;
    this.remember(scrollTop);
    this.refresh();
  }

  /** After the rows were drawn: the space around them, and the place of the view. */
  place(): void {
    if (this.parts === null) return;
    const { box, above, below } = this.parts;
    above.style.height = `${this.heights.before(this.from)}px`;
    below.style.height = `${this.heights.total - this.heights.before(this.to)}px`;
    if (this.atEnd.peek()) {
      box.scrollTop = box.scrollHeight;
      this.lastTop = box.scrollTop;
      this.lastHeight = box.scrollHeight;
      return;
    }
    const top = this.anchorTop();
    if (top === null || Math.abs(this.lastTop - top) <= 0.5) return;
    box.scrollTop = top;
    this.lastTop = top;
  }

  private anchorTop(): number | null {
    const index = this.anchor === null ? -1 : this.heights.indexOf(this.anchor.key);
    return index < 0 ? null : this.heights.before(index) + this.anchor!.inset;
  }

  private remember(top: number): void {
    const index = this.heights.at(top);
    const key = this.heights.keyAt(index);
    this.anchor = key === undefined ? null : { key, inset: top - this.heights.before(index) };
  }

  private refresh(): void {
    const height = this.viewHeight;
    const end = this.atEnd.peek();
    const top = end ? Math.max(0, this.heights.total - height) : (this.anchorTop() ?? this.lastTop);
    const isEmpty = this.heights.length === 0 || this.isWhole;
    const first = isEmpty ? 0 : this.heights.at(Math.max(0, top - this.margin));
    // Rows that the first drawing had beyond the view are about to be kept ready anyway.
    const from = this.isWidened || this.shown.peek().length === 0 ? first : Math.min(first, this.from);
    const last = this.heights.at(top + height + this.margin);
    const to = end || this.isWhole ? this.heights.length : Math.min(this.heights.length, last + 1);
    if (top < NEAR_EDGE) this.list.onNear("first");
    if (!this.list.hasEnd() && this.heights.total - top - height < NEAR_EDGE) this.list.onNear("last");
    this.endSeen.value = end || this.isEndNear(top);
    if (from === this.from && to === this.to && same(this.shown.peek(), this.keys, from, to)) return;
    this.from = from;
    this.to = to;
    this.shown.value = this.keys.slice(from, to);
  }

  private isEndNear(top: number): boolean {
    return this.list.hasEnd() && this.heights.total - top - this.viewHeight <= NEAR_END;
  }

  private resized(entries: readonly ResizeObserverEntry[]): void {
    const before = this.heights.total;
    for (const { target, borderBoxSize, contentRect } of entries) {
      const key = this.names.get(target);
      if (key === undefined) this.viewHeight = target.clientHeight;
      else this.heights.measure(key, borderBoxSize[0]?.blockSize ?? contentRect.height);
    }
    // What was unfolded there is folded again.
    if (this.heights.total < before && this.isEndNear(this.lastTop)) this.atEnd.value = true;
    this.place();
    this.refresh();
  }
}

function same(shown: readonly string[], keys: readonly string[], from: number, to: number): boolean {
  return shown.length === to - from && shown.every((key, at) => keys[from + at] === key);
}
