/** A slider over the facts of a turn, and the transcript as it was at that moment. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../api/problem";
import type { LoggedEvent } from "../api/types";
import type { ReplayedTurn } from "../session/replayed_turn";
import { texts } from "../texts";
import { preciseTime } from "../texts/amounts";
import { replay as words } from "../texts/replay";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refusal } from "../ui/refusal";
import { loadFacts } from "./load_facts";
import { Moments, pauseBetween, SPEEDS, type Speed } from "./moments";
import { ReplayRows } from "./replay_rows";

interface Loaded {
  readonly facts: readonly LoggedEvent[];
  readonly ended: boolean;
}

function useFacts(turn: ReplayedTurn): { loaded: Loaded; problem: Problem | null } {
  const [loaded, setLoaded] = useState<Loaded>({ facts: [], ended: false });
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const abort = new AbortController();
    loadFacts(turn, (facts, ended) => setLoaded({ facts, ended }), abort.signal).catch((error: unknown) => {
      if (!abort.signal.aborted) setProblem(asProblem(error));
    });
    return () => abort.abort();
  }, [turn]);
  return { loaded, problem };
}

export function ReplayDialog({ turn, onClose }: { turn: ReplayedTurn; onClose: () => void }) {
  const { loaded, problem } = useFacts(turn);
  return (
    <Dialog title={words.title} onClose={onClose} kind="replay-dialog">
      <h2>{words.title}</h2>
      <p class="text-dim">{words.lead}</p>
      {problem === null ? null : <Refusal problem={problem} />}
      {loaded.facts.length > 0 ? (
        <Player turn={turn} loaded={loaded} />
      ) : problem === null ? (
        <p class="text-dim">{texts.loading}</p>
      ) : null}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

/** Where a key leads; null: it is not one of ours. */
function target(key: string, place: number, last: number): number | null {
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(0, place - 1);
    case "ArrowRight":
    case "ArrowUp":
      return Math.min(last, place + 1);
    case "Home":
      return 0;
    case "End":
      return last;
    default:
      return null;
  }
}

function Player({ turn, loaded: { facts, ended } }: { turn: ReplayedTurn; loaded: Loaded }) {
  const [place, setPlace] = useState(0);
  const [speed, setSpeed] = useState<Speed | null>(null);
  const moments = useMemo(() => new Moments(turn, facts), [turn, facts]);
  const last = facts.length - 1;
  const fact = facts[place]!;
  const slider = useRef<HTMLInputElement>(null);
  const [chosenSpeed, chooseSpeed] = useState<Speed>("1");
  const go = (next: number): void => {
    setSpeed(null);
    setPlace(next);
  };
  useEffect(() => slider.current?.focus(), []);
  useEffect(() => {
    if (speed === null) return;
    const next = facts[place + 1];
    if (next === undefined) {
      if (ended) setSpeed(null);
      return;
    }
    const timer = setTimeout(() => setPlace(place + 1), pauseBetween(fact, next, speed));
    return () => clearTimeout(timer);
  }, [speed, place, facts, ended]);
  const play = (): void => {
    if (place === last && ended) setPlace(0);
    setSpeed(chosenSpeed);
  };
  const name = words.facts[fact.type] ?? fact.type;
  return (
    <div
      class="replay-dialog-player"
      onKeyDown={(event) => {
        if (event.ctrlKey || event.altKey || event.metaKey || (event.target as Element).closest("pre, select")) return;
        const next = target(event.key, place, last);
        if (next === null) return;
        event.preventDefault();
        go(next);
      }}
    >
      <input
        ref={slider}
        type="range"
        min={0}
        max={last}
        value={place}
        aria-label={words.slider}
        aria-valuetext={words.spoken(place + 1, facts.length, name, preciseTime(fact.at))}
        onInput={(event) => go(Number(event.currentTarget.value))}
      />
      <p class="replay-dialog-fact">
        <b>{name}</b>
        <time>{preciseTime(fact.at)}</time>
        <span>{words.after(fact.at - facts[0]!.at)}</span>
        <span>{words.position(place + 1, facts.length)}</span>
        {ended ? null : <span>{words.more}</span>}
      </p>
      <div class="replay-dialog-buttons">
        <Button disabled={place === 0} onClick={() => go(0)}>
          {words.first}
        </Button>
        <Button disabled={place === 0} onClick={() => go(place - 1)}>
          {words.back}
        </Button>
        <Button kind="main" onClick={speed === null ? play : () => setSpeed(null)}>
          {speed === null ? words.play : words.pause}
        </Button>
        <Button disabled={place === last} onClick={() => go(place + 1)}>
          {words.forward}
        </Button>
        <Button disabled={place === last} onClick={() => go(last)}>
          {words.last}
        </Button>
        <select
          aria-label={words.speed}
          value={chosenSpeed}
          onChange={(event) => {
            const chosen = event.currentTarget.value as Speed;
            chooseSpeed(chosen);
            if (speed !== null) setSpeed(chosen);
          }}
        >
          {SPEEDS.map((choice) => (
            <option key={choice} value={choice}>
              {words.speeds[choice]}
            </option>
          ))}
        </select>
      </div>
      <div class="replay-dialog-rows" role="region" aria-label={texts.transcript.label} tabIndex={0}>
        <ReplayRows state={moments.after(place + 1)} />
      </div>
    </div>
  );
}
