/** The transcript: a window onto the rows, which follows the end while the reader is there. */

import { signal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { RowContent } from "../parts/row";
import { Scroller } from "../parts/scroller";
import { attempt } from "../state/app";
import type { Opened } from "../state/opened";
import { go, route } from "../state/route";
import type { Row } from "../state/rows";
import { texts } from "../texts";

/** Pixels of a row that says nothing, of a line of words, and of a call. */
const GUESSES = { message: 70, step: 50, call: 50, note: 40, end: 60 };
const LINE = { characters: 90, height: 24 };
const CALL = 40;
/** How long the row that was looked for is marked. */
const MARKED_MS = 4_000;

export function Transcript({ opened }: { opened: Opened }) {
  const scroller = useScroller(opened);
  const box = useRef<HTMLDivElement>(null);
  const above = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const shown = scroller.shown.value;
  const apart = opened.apart.value;

  useLayoutEffect(() => {
    scroller.attach({ box: box.current!, above: above.current!, below: below.current! });
    return () => scroller.close();
  }, [scroller]);
  const { compacting } = opened.head;
  // The line at the end may take more room than there was before.
  useLayoutEffect(() => scroller.place(), [scroller, shown, compacting.value]);
  const sought = useSought(opened, scroller);
  useReturns(opened, scroller);
  const back = (): void => {
    box.current?.focus({ preventScroll: true });
    toNewest(opened);
  };

  return (
    <div class="viewport">
      <div
        ref={box}
        class="scroll"
        role="region"
        aria-label={texts.transcript.label}
        tabIndex={0}
        onScroll={() => scroller.scrolled()}
        onClickCapture={(event) => {
          if ((event.target as Element).closest("button.fold, .turndots")) scroller.hold();
        }}
      >
        {opened.loadingOlder.value ? <p class="earlier">{texts.transcript.loadingEarlier}</p> : null}
        <div ref={above} class="space" />
        {shown.map((key) => (
          <RowView key={key} id={key} opened={opened} scroller={scroller} sought={sought} />
        ))}
        <div ref={below} class="space" />
        {apart ? <Following opened={opened} /> : <Activity opened={opened} />}
      </div>
      {scroller.endSeen.value ? null : (
        <button type="button" class="btn latest" aria-keyshortcuts="End" onClick={back}>
          {apart ? <span class="dim">{texts.transcript.earlierPart}</span> : null}
          <span aria-hidden="true">↓</span> {texts.transcript.latest}
        </button>
      )}
    </div>
  );
}

/** Rather too low than too high: then a few rows more are drawn, and not a few too little. */
function guess(row: Row | undefined): number {
  const least = GUESSES[row?.kind ?? "note"];
  if (row?.kind !== "step") return least;
  return least + Math.floor(row.text.length / LINE.characters) * LINE.height + row.calls.length * CALL;
}

function useScroller(opened: Opened): Scroller {
  return useMemo(() => {
    const scroller = new Scroller({
      keys: opened.shown,
      guess: (key) => guess(opened.peek(key)),
      hasEnd: () => !opened.apart.peek(),
      onNear: (edge) => {
        const [loading, load] =
          edge === "first"
            ? [opened.loadingOlder, () => opened.loadOlder()]
            : [opened.loadingNewer, () => opened.loadNewer()];
        if (edge === "first" && opened.head.older.peek() === null) return;
        // Not now: this is told while the list is being laid out.
        if (!loading.peek()) queueMicrotask(() => void attempt(load));
      },
    });
    opened.reader = () => scroller.reader;
    return scroller;
  }, [opened]);
}

/** The row that the address names. */
interface Sought {
  readonly key: string;
  readonly marked: Signal<boolean>;
  /** Whether it had the focus: once, or it would come back whenever the row is drawn. */
  focused: boolean;
}

interface RowProps {
  id: string;
  opened: Opened;
  scroller: Scroller;
  sought: Signal<Sought | null>;
}

function RowView({ id, opened, scroller, sought }: RowProps) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => scroller.observe(ref.current!, id), [scroller, id]);
  const row = opened.row(id).value;
  const found = sought.value?.key === id ? sought.value : null;
  // Read out by the focus, so that whoever does not see the mark is at the place as well.
  useEffect(() => {
    if (found === null || found.focused) return;
    found.focused = true;
    ref.current?.focus({ preventScroll: true });
  }, [found]);
  const place = found === null ? {} : { role: "group" as const, tabIndex: -1, "aria-label": texts.transcript.searchResult };
  return (
    <div ref={ref} class={found?.marked.value ? "row sought" : "row"} {...place}>
      {row === undefined ? null : <RowContent opened={opened} row={row} />}
    </div>
  );
}

/** What the turn does while no reply streams, and what is done to the session beside it. */
function Activity({ opened }: { opened: Opened }) {
  const turn = opened.head.turn.value;
  const last = opened.order.value.at(-1);
  const row = last === undefined ? undefined : opened.row(last).value;
  const { approvals, questions, compacting } = opened.head;
  if (compacting.value !== null && !turn?.cancelling) return <Doing text={texts.compaction.running(compacting.value.before)} />;
  if (turn === null) return <div class="activity" />;
  const { stopping, waiting, working } = texts.transcript;
  if (turn.cancelling) return <Doing text={stopping} />;
  if (row?.kind === "step" && row.live) return <div class="activity" />;
  return <Doing text={approvals.value.length + questions.value.length > 0 ? waiting : working} />;
}

/** Below a stretch that goes on. */
function Following({ opened }: { opened: Opened }) {
  return opened.loadingNewer.value ? <Doing text={texts.loading} /> : <div class="activity" />;
}

function Doing({ text }: { text: string }) {
  return (
    <div class="activity">
      <p class="thinking">{text}</p>
    </div>
  );
}

/** Brings into view what the address names, and marks it for a moment. */
function useSought(opened: Opened, scroller: Scroller): Signal<Sought | null> {
  const sought = useMemo(() => signal<Sought | null>(null), [opened]);
  const place = route.value;
  useEffect(() => {
    const { session, seq } = place;
    if (session !== opened.id || seq === null) return;
    let unmark: ReturnType<typeof setTimeout> | null = null;
    let wanted = true;
    const find = async (): Promise<void> => {
      const key = await opened.goTo(seq);
      if (!wanted || key === null) return;
      scroller.seek(key);
      const marked = signal(true);
      sought.value = { key, marked, focused: false };
      unmark = setTimeout(() => (marked.value = false), MARKED_MS);
    };
    void attempt(find);
    return () => {
      wanted = false;
      sought.value = null;
      if (unmark !== null) clearTimeout(unmark);
    };
  }, [opened, scroller, place]);
  return sought;
}

/** The newest is where the address of the session alone leads. */
export function toNewest(opened: Opened): void {
  if (route.peek().seq !== null) go(opened.id);
  opened.toNewest();
}

/** Follows the way back, whoever took it; the key End takes it too. */
function useReturns(opened: Opened, scroller: Scroller): void {
  const seen = useRef(opened.returns.peek());
  const { value } = opened.returns;
  useLayoutEffect(() => {
    if (value === seen.current) return;
    seen.current = value;
    scroller.toEnd();
  }, [scroller, value]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "End" || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
      const target = event.target as Element;
      if (target.closest("input, textarea, select, dialog, aside, nav, .ones, .summary")) return;
      event.preventDefault();
      toNewest(opened);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [opened]);
}
