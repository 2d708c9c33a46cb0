/** The transcript: a window onto the rows, which follows the end while the reader is there. */

import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { RowContent } from "../parts/row";
import { Scroller } from "../parts/scroller";
import { route } from "../state/route";
import { attempt } from "../state/app";
import type { Opened } from "../state/opened";
import { texts } from "../texts";

const GUESSES = { message: 70, step: 140, call: 50, note: 40, end: 60 };
/** Pages that are read at most to find what a search has found. */
const MOST_PAGES = 100;

export function Transcript({ opened }: { opened: Opened }) {
  const scroller = useScroller(opened);
  const box = useRef<HTMLDivElement>(null);
  const above = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const shown = scroller.shown.value;
  opened.atEnd = scroller.atEnd.value;

  useLayoutEffect(() => {
    scroller.attach({ box: box.current!, above: above.current!, below: below.current! });
    return () => scroller.close();
  }, [scroller]);
  useLayoutEffect(() => scroller.place(), [scroller, shown]);
  useSought(opened, scroller);

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
          if ((event.target as Element).closest("button.fold, .note button, .turndots")) scroller.hold();
        }}
      >
        {opened.loadingOlder.value ? <p class="earlier">{texts.transcript.earlier}</p> : null}
        <div ref={above} class="space" />
        {shown.map((key) => (
          <RowView key={key} id={key} opened={opened} scroller={scroller} />
        ))}
        <div ref={below} class="space" />
        <Activity opened={opened} />
      </div>
      {scroller.atEnd.value ? null : (
        <button type="button" class="btn latest" onClick={() => scroller.toEnd()}>
          <span aria-hidden="true">↓</span> {texts.transcript.latest}
        </button>
      )}
    </div>
  );
}

function useScroller(opened: Opened): Scroller {
  return useMemo(
    () =>
      new Scroller(
        opened.order,
        (key) => GUESSES[opened.peek(key)?.kind ?? "note"],
        () => {
          // Not now: this is told while the list is being laid out.
          if (opened.head.older.peek() !== null && !opened.loadingOlder.peek()) {
            queueMicrotask(() => void attempt(() => opened.loadOlder()));
          }
        },
      ),
    [opened],
  );
}

function RowView({ id, opened, scroller }: { id: string; opened: Opened; scroller: Scroller }) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => scroller.observe(ref.current!, id), [scroller, id]);
  const row = opened.row(id).value;
  const sought = route.value.seq !== null && row?.seq === route.value.seq;
  return (
    <div ref={ref} class={sought ? "row sought" : "row"}>
      {row === undefined ? null : <RowContent opened={opened} row={row} />}
    </div>
  );
}

/** What the turn does while no reply streams. */
function Activity({ opened }: { opened: Opened }) {
  const turn = opened.head.turn.value;
  const last = opened.order.value.at(-1);
  const row = last === undefined ? undefined : opened.row(last).value;
  if (turn === null) return <div class="activity" />;
  const { approvals, questions } = opened.head;
  const { stopping, waiting, working } = texts.transcript;
  if (turn.cancelling) return <Doing text={stopping} />;
  if (row?.kind === "step" && row.live) return <div class="activity" />;
  return <Doing text={approvals.value.length + questions.value.length > 0 ? waiting : working} />;
}

function Doing({ text }: { text: string }) {
  return (
    <div class="activity">
      <p class="thinking">{text}</p>
    </div>
  );
}

/** Brings into view what the address names; pages are read until it is there. */
function useSought(opened: Opened, scroller: Scroller): void {
  const { seq } = route.value;
  useEffect(() => {
    if (seq === null) return;
    let wanted = true;
    const find = async (): Promise<void> => {
      for (let page = 0; page < MOST_PAGES && wanted; page++) {
        const key = rowOf(opened, seq);
        if (key !== null) return void scroller.seek(key);
        if (opened.head.older.peek() === null) return;
        await opened.loadOlder();
      }
    };
    void attempt(find);
    return () => {
      wanted = false;
    };
  }, [opened, scroller, seq]);
}

/** The last row that is not after this fact, if the row before it is here as well. */
function rowOf(opened: Opened, seq: number): string | null {
  const { order } = opened;
  let found: string | null = null;
  for (const key of order.peek()) {
    const row = opened.peek(key);
    if (row === undefined || row.seq > seq) break;
    found = key;
  }
  return found;
}
