/** The models: which one is the default, and the ways to others. */

import { useState } from "preact/hooks";
import { changeSession } from "../api/keryx";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { attempt, current } from "../state/app";
import { go } from "../state/route";
import { texts } from "../texts";
import { DefaultModel } from "./default";
import { PasteKey, Servers } from "./models";
import { isTour, modelsShown, ready, setup } from "./steps";

export function ModelsDialog() {
  return modelsShown.value ? <Shown onClose={() => (modelsShown.value = false)} /> : null;
}

/** What was found just now is to be chosen from; the ways to more are there for whoever wants them. */
function Shown({ onClose }: { onClose: () => void }) {
  const [more, setMore] = useState(false);
  const model = ready.value;
  const configured = setup.value?.configured ?? false;
  return (
    <Dialog title={texts.setup.choose} onClose={onClose} kind="choosemodel">
      <h2>{texts.setup.choose}</h2>
      {model === null ? null : (
        <p role="status" class="isready">
          {texts.setup.ready(model)}
        </p>
      )}
      {configured ? <DefaultModel /> : null}
      {configured && !more ? (
        <Button onClick={() => setMore(true)}>{texts.setup.addModel}</Button>
      ) : (
        <div class="cards">
          <Servers />
          <PasteKey onKept={() => setMore(false)} />
        </div>
      )}
      <div class="btns">
        <Button onClick={onClose}>{texts.close}</Button>
        {model === null ? null : <Begin model={model} onClose={onClose} />}
      </div>
    </Dialog>
  );
}

/** A session that has no model yet can use it right there; a tour cannot, and ends. */
function Begin({ model, onClose }: { model: string; onClose: () => void }) {
  const opened = current.value?.opened.value ?? null;
  const here = opened !== null && !isTour(opened.head.settings.value.model);
  // At once, for the next keys are meant for the message; what is said waits for the change.
  const begin = (): void => {
    if (here) void attempt(() => changeSession(opened.id, { model }));
    else go(null);
    onClose();
  };
  return (
    <Button kind="main" onClick={begin}>
      {here ? texts.setup.useHere : texts.setup.startSession}
    </Button>
  );
}
