/** The models: which one is the default, and the ways to others. */

import { useState } from "preact/hooks";
import { changeSession } from "../api/client";
import { go } from "../navigation/route";
import { current } from "../session/current_session";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { attempt } from "../ui/notice";
import { DefaultModel } from "./default_model";
import { LocalModelCard } from "./local_model_card";
import { PasteKey, Servers } from "./model_sources";
import { isTour, modelsShown, readyModel, setup } from "./setup_state";

export function ModelsDialog() {
  return modelsShown.value ? <Shown onClose={() => (modelsShown.value = false)} /> : null;
}

/** What was found just now is to be chosen from; the ways to more are there for whoever wants them. */
function Shown({ onClose }: { onClose: () => void }) {
  const [more, setMore] = useState(false);
  const model = readyModel.value;
  const configured = setup.value?.configured ?? false;
  return (
    <Dialog title={texts.setup.choose} onClose={onClose} kind="models-dialog">
      <h2>{texts.setup.choose}</h2>
      {model === null ? null : (
        <p role="status" class="models-dialog-ready">
          {texts.setup.ready(model)}
        </p>
      )}
      {configured ? <DefaultModel /> : null}
      {configured && !more ? (
        <Button onClick={() => setMore(true)}>{texts.setup.addModel}</Button>
      ) : (
        <div class="model-sources">
          <LocalModelCard onChosen={onClose} />
          <Servers />
          <PasteKey onKept={() => setMore(false)} />
        </div>
      )}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.close}</Button>
        {model === null ? null : <Begin model={model} onClose={onClose} />}
      </div>
    </Dialog>
  );
}

/** A session that has no model yet can use it right there; a tour cannot, and ends. */
function Begin({ model, onClose }: { model: string; onClose: () => void }) {
  const session = current.value?.store.value ?? null;
  const here = session !== null && !isTour(session.head.settings.value.model);
  // At once, for the next keys are meant for the message; what is said waits for the change.
  const begin = (): void => {
    if (here) void attempt(() => changeSession(session.id, { model }));
    else go(null);
    onClose();
  };
  return (
    <Button kind="main" onClick={begin}>
      {here ? texts.setup.useHere : texts.setup.startSession}
    </Button>
  );
}
