/** No session is open: the next one begins with what is said here. */

import { Button } from "../parts/button";
import { DefaultModel } from "../setup/default";
import { found, ready, setup, showModels } from "../setup/steps";
import { Welcome } from "../setup/welcome";
import { composingOf, opening, profiles } from "../state/app";
import { texts } from "../texts";
import { Composer } from "./composer";
import { ListButton } from "./header";
import { Fields, type Chosen } from "./settings";

export function EmptyScreen() {
  const told = setup.value;
  return (
    <>
      <header class="head narrow">
        <div class="bar">
          <ListButton />
        </div>
      </header>
      {told === null ? <div class="centre" /> : told.configured ? <Start /> : <Welcome />}
      <div class="dock">
        <div class="col">
          <Composer composing={composingOf(null)} running={false} stopping={false} onStop={() => undefined} />
        </div>
      </div>
    </>
  );
}

function Start() {
  const change = (changes: Chosen): void => {
    const next = { ...opening.value, ...changes };
    // What is left to the server is not named at all.
    opening.value = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "" && value !== null));
  };
  return (
    <div class="centre start">
      <h1>{texts.newSession.title}</h1>
      <p class="dim" role="status">
        {ready.value === null ? "" : `${texts.setup.ready(ready.value)} `}
        {texts.newSession.lead}
      </p>
      <Fields
        chosen={opening.value as Chosen}
        profile={opening.value.profile ?? profiles.value.profiles[0]?.name ?? null}
        onChange={change}
      />
      {found.value.length > 1 ? <DefaultModel /> : null}
      <Button kind="quiet" onClick={showModels}>
        {texts.setup.models}
      </Button>
    </div>
  );
}
