/** Under the header of a tour: what it is, what to try in it, and the way out of it. */

import { computed, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { SessionKeeper } from "../session/session_keeper";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { showModels } from "./setup_state";
import { type TourProgress, tourProgress } from "./tour_progress";

/** Tours in which the connection was lost and came back: nothing in the log tells of that. */
const survived = signal<ReadonlySet<string>>(new Set());

const STEPS = ["cancel", "answer", "steer", "kill"] as const satisfies readonly (keyof TourProgress)[];

export function TourLine({ session, keeper }: { session: SessionStore; keeper: SessionKeeper }) {
  useSurvival(keeper);
  const done = useMemo(() => computed(() => tourProgress(session, survived.value.has(session.id))), [session]).value;
  const { tour } = texts.setup;
  return (
    <section class="tour-line" aria-label={texts.setup.tour.title}>
      <span class="tour-line-label" title={tour.about}>
        {tour.label}
      </span>
      <ol aria-label={tour.tryIt}>
        {STEPS.map((step) => (
          <li key={step} class={done[step] ? "is-done" : ""}>
            {tour.steps[step]}
            {done[step] ? <span class="text-hidden">, {tour.done}</span> : null}
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
    <section class="tour-line" aria-label={texts.setup.noModel}>
      <span class="tour-line-label">{texts.setup.noModel}</span>
      <span class="layout-grow" />
      <Button onClick={showModels}>{texts.setup.choose}</Button>
    </section>
  );
}
