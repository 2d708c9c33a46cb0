/** The transcript: a window onto the rows, which follows the end while the reader is there. */

import { type Signal, signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { go, route } from "../navigation/route";
import type { Row } from "../session/rows";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { attempt } from "../ui/notice";
import { usePrinting } from "./printing";
import { ReplaceDialog } from "./replace_dialog";
import { RowContent } from "./row";
import { Scroller } from "./scroller";

/** Pixels of a row that says nothing, of a line of words, and of a call. */
const GUESSES = { message: 70, step: 50, call: 50, note: 40, end: 60 };
const LINE = { characters: 90, height: 24 };
const CALL = 40;
/** How long the row that was looked for is marked. */
const MARKED_MS = 4_000;

export function Transcript({ session }: { session: SessionStore }) {
  const scroller = useScroller(session);
  const box = useRef<HTMLDivElement>(null);
  const above = useRef<HTMLDivElement>(null);
  const below = useRef<HTMLDivElement>(null);
  const shown = scroller.shown.value;
  const apart = session.apart.value;

  useLayoutEffect(() => {
    scroller.attach({ box: box.current!, above: above.current!, below: below.current! });
    return () => scroller.close();
  }, [scroller]);
  const { compacting } = session.head;
  // The line at the end may take more room than there was before.
  useLayoutEffect(() => scroller.place(), [scroller, shown, compacting.value]);
  const sought = useSought(session, scroller);
  useReturns(session, scroller);
  usePrinting(session, scroller);
  const back = (): void => {
    box.current?.focus({ preventScroll: true });
    toNewest(session);
  };

  return (
    <div class="transcript">
      <div
        ref={box}
        class="transcript-scroll"
        role="region"
        aria-label={texts.transcript.label}
        tabIndex={0}
        onScroll={() => scroller.scrolled()}
        onClickCapture={(event) => {
          if ((event.target as Element).closest("button.disclosure, .turn-menu-dots")) scroller.hold();
        }}
      >
        {session.loadingOlder.value ? <p class="transcript-earlier">{texts.transcript.loadingEarlier}</p> : null}
        {session.head.older.value === null ? null : <p class="transcript-unprinted">{texts.transcript.notPrinted}</p>}
        <div ref={above} class="transcript-space" />
        {shown.map((key) => (
          <RowView key={key} id={key} session={session} scroller={scroller} sought={sought} />
        ))}
        <div ref={below} class="transcript-space" />
        {apart ? <Following session={session} /> : <Activity session={session} />}
      </div>
      <ReplaceDialog />
      {scroller.endSeen.value ? null : (
        <button type="button" class="button transcript-latest" aria-keyshortcuts="End" onClick={back}>
          {apart ? <span class="text-dim">{texts.transcript.earlierPart}</span> : null}
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

function useScroller(session: SessionStore): Scroller {
  return useMemo(() => {
    const scroller = new Scroller({
      keys: session.shown,
      guess: (key) => guess(session.peek(key)),
      hasEnd: () => !session.apart.peek(),
      onNear: (edge) => {
        const [loading, load] =
          edge === "first"
            ? [session.loadingOlder, () => session.loadOlder()]
            : [session.loadingNewer, () => session.loadNewer()];
        if (edge === "first" && session.head.older.peek() === null) return;
        // Not now: this is told while the list is being laid out.
        if (!loading.peek()) queueMicrotask(() => void attempt(load));
      },
    });
    session.reader = () => scroller.reader;
    return scroller;
  }, [session]);
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
  session: SessionStore;
  scroller: Scroller;
  sought: Signal<Sought | null>;
}

function RowView({ id, session, scroller, sought }: RowProps) {
  const ref = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => scroller.observe(ref.current!, id), [scroller, id]);
  const row = session.row(id).value;
  const target = sought.value?.key === id ? sought.value : null;
  // Read out by the focus, so that whoever does not see the mark is at the place as well.
  useEffect(() => {
    if (target === null || target.focused) return;
    target.focused = true;
    ref.current?.focus({ preventScroll: true });
  }, [target]);
  const place =
    target === null ? {} : { role: "group" as const, tabIndex: -1, "aria-label": texts.transcript.searchResult };
  return (
    <div ref={ref} class={target?.marked.value ? "transcript-row is-sought" : "transcript-row"} {...place}>
      {row === undefined ? null : <RowContent session={session} row={row} />}
    </div>
  );
}

/** What the turn does while no reply streams, and what is done to the session beside it. */
function Activity({ session }: { session: SessionStore }) {
  const turn = session.head.turn.value;
  const last = session.order.value.at(-1);
  const row = last === undefined ? undefined : session.row(last).value;
  const { approvals, questions, compacting } = session.head;
  if (compacting.value !== null && !turn?.cancelling)
    return <Doing text={texts.compaction.running(compacting.value.before)} />;
  if (turn === null) return <div class="transcript-activity" />;
  const { stopping, waiting, working } = texts.transcript;
  if (turn.cancelling) return <Doing text={stopping} />;
  if (row?.kind === "step" && row.live) return <div class="transcript-activity" />;
  return <Doing text={approvals.value.length + questions.value.length > 0 ? waiting : working} />;
}

/** Below a window that goes on. */
function Following({ session }: { session: SessionStore }) {
  return session.loadingNewer.value ? <Doing text={texts.loading} /> : <div class="transcript-activity" />;
}

function Doing({ text }: { text: string }) {
  return (
    <div class="transcript-activity">
      <p class="transcript-thinking">{text}</p>
    </div>
  );
}

/** Brings into view what the address names, and marks it for a moment. */
function useSought(session: SessionStore, scroller: Scroller): Signal<Sought | null> {
  const sought = useMemo(() => signal<Sought | null>(null), [session]);
  const place = route.value;
  useEffect(() => {
    const { session: sessionId, seq } = place;
    if (sessionId !== session.id || seq === null) return;
    let unmark: ReturnType<typeof setTimeout> | null = null;
    let mounted = true;
    const find = async (): Promise<void> => {
      const key = await session.goTo(seq);
      if (!mounted || key === null) return;
      scroller.seek(key);
      const marked = signal(true);
      sought.value = { key, marked, focused: false };
      unmark = setTimeout(() => (marked.value = false), MARKED_MS);
    };
    void attempt(find);
    return () => {
      mounted = false;
      sought.value = null;
      if (unmark !== null) clearTimeout(unmark);
    };
  }, [session, scroller, place]);
  return sought;
}

/** The newest is where the address of the session alone leads. */
export function toNewest(session: SessionStore): void {
  if (route.peek().seq !== null) go(session.id);
  session.toNewest();
}

/** Follows the way back, whoever took it; the key End takes it too. */
function useReturns(session: SessionStore, scroller: Scroller): void {
  const seen = useRef(session.returns.peek());
  const { value } = session.returns;
  useLayoutEffect(() => {
    if (value === seen.current) return;
    seen.current = value;
    scroller.toEnd();
  }, [scroller, value]);
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "End" || event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey) return;
      const target = event.target as Element;
      if (target.closest("input, textarea, select, dialog, aside, nav, .nested-calls-ones, .summary-text")) return;
      event.preventDefault();
      toNewest(session);
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [session]);
}
