/** Under the header of a tour: what it is, what to try in it, and the way out of it. */

import { computed, signal } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { changeSession } from "../api/keryx";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { attempt } from "../state/app";
import type { Opened, SessionKeeper } from "../state/opened";
import { go } from "../state/route";
import { texts } from "../texts";
import { PasteKey, Servers } from "./models";
import { ready, setup } from "./steps";
import { tried, type Tried } from "./tried";

/** Tours in which the connection was lost and came back: nothing in the log tells of that. */
const survived = signal<ReadonlySet<string>>(new Set());

const STEPS = ["cancel", "answer", "steer", "kill"] as const satisfies readonly (keyof Tried)[];

export function TourLine({ opened, keeper }: { opened: Opened; keeper: SessionKeeper }) {
  const [choosing, setChoosing] = useState(false);
  useSurvival(keeper);
  const done = useMemo(() => computed(() => tried(opened, survived.value.has(opened.id))), [opened]).value;
  const { tour } = texts.setup;
  return (
    <section class="tourline" aria-label={texts.setup.tour.title}>
      <span class="tourlabel" title={tour.about}>
        {tour.label}
      </span>
      <ol aria-label={tour.invites}>
        {STEPS.map((step) => (
          <li key={step} class={done[step] ? "done" : ""}>
            {tour.steps[step]}
            {done[step] ? <span class="unseen">, {tour.done}</span> : null}
          </li>
        ))}
      </ol>
      <Button onClick={() => setChoosing(true)}>{tour.leave}</Button>
      {choosing ? <ChooseModel onClose={() => setChoosing(false)} /> : null}
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
export function NoModelLine({ opened }: { opened: Opened }) {
  const [choosing, setChoosing] = useState(false);
  return (
    <section class="tourline" aria-label={texts.setup.none}>
      <span class="tourlabel">{texts.setup.none}</span>
      <span class="grow" />
      <Button onClick={() => setChoosing(true)}>{texts.setup.choose}</Button>
      {choosing ? <ChooseModel opened={opened} onClose={() => setChoosing(false)} /> : null}
    </section>
  );
}

/** With a session that has none yet, the model can be used right there. */
function ChooseModel({ onClose, opened }: { onClose: () => void; opened?: Opened }) {
  const model = ready.value;
  const begin = async (): Promise<void> => {
    if (opened === undefined) return go(null);
    if (await attempt(() => changeSession(opened.id, { model: model! }))) onClose();
  };
  return (
    <Dialog title={texts.setup.choose} onClose={onClose} kind="choosemodel">
      <h2>{texts.setup.choose}</h2>
      {model !== null && setup.value?.configured ? (
        <p role="status" class="isready">
          {texts.setup.ready(model)}
        </p>
      ) : (
        <div class="cards">
          <Servers />
          <PasteKey />
        </div>
      )}
      <div class="btns">
        <Button onClick={onClose}>{texts.close}</Button>
        {model === null ? null : (
          <Button kind="main" onClick={() => void begin()}>
            {opened === undefined ? texts.setup.begin : texts.setup.here}
          </Button>
        )}
      </div>
    </Dialog>
  );
}
