/** Under the header of a tour: what it is, what to try in it, and the way out of it. */

import { computed, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { Button } from "../parts/button";
import type { Opened, SessionKeeper } from "../state/opened";
import { texts } from "../texts";
import { showModels } from "./steps";
import { tried, type Tried } from "./tried";

/** Tours in which the connection was lost and came back: nothing in the log tells of that. */
const survived = signal<ReadonlySet<string>>(new Set());

const STEPS = ["cancel", "answer", "steer", "kill"] as const satisfies readonly (keyof Tried)[];

export function TourLine({ opened, keeper }: { opened: Opened; keeper: SessionKeeper }) {
  useSurvival(keeper);
  const done = useMemo(() => computed(() => tried(opened, survived.value.has(opened.id))), [opened]).value;
  const { tour } = texts.setup;
  return (
    <section class="tourline" aria-label={texts.setup.tour.title}>
      <span class="tourlabel" title={tour.about}>
        {tour.label}
      </span>
      <ol aria-label={tour.tryIt}>
        {STEPS.map((step) => (
          <li key={step} class={done[step] ? "done" : ""}>
            {tour.steps[step]}
            {done[step] ? <span class="unseen">, {tour.done}</span> : null}
          </li>
        ))}
      </ol>
      <Button onClick={showModels}>{tour.leave}</Button>
    </section>
  );
}

function useSurvival(keeper: SessionKeeper): void {
  useEffect(() => {
    let lost = false;
    return keeper.connection.subscribe((now) => {
      if (now === "open" && lost) survived.value = new Set([...survived.peek(), keeper.id]);
      lost = now === "lost" || (lost && now !== "open");
    });
  }, [keeper]);
}

/** Under the header of a session that has nothing to think with. */
export function NoModelLine() {
  return (
    <section class="tourline" aria-label={texts.setup.noModel}>
      <span class="tourlabel">{texts.setup.noModel}</span>
      <span class="grow" />
      <Button onClick={showModels}>{texts.setup.choose}</Button>
    </section>
  );
}
