/** No session is open: the next one begins with what is said here. */

import { composingOf, opening, profiles } from "../state/app";
import { texts } from "../texts";
import { Composer } from "./composer";
import { ListButton } from "./header";
import { Fields, type Chosen } from "./settings";

export function EmptyScreen() {
  const change = (changes: Chosen): void => {
    const next = { ...opening.value, ...changes };
    // What is left to the server is not named at all.
    opening.value = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "" && value !== null));
  };
  return (
    <>
      <header class="head narrow">
        <div class="bar">
          <ListButton />
        </div>
      </header>
      <div class="centre start">
        <h1>{texts.empty.title}</h1>
        <p class="dim">{texts.empty.lead}</p>
        <Fields
          chosen={opening.value as Chosen}
          profile={profiles.value.profiles[0]?.name ?? null}
          onChange={change}
        />
      </div>
      <div class="dock">
        <div class="col">
          <Composer composing={composingOf(null)} running={false} stopping={false} onStop={() => undefined} />
        </div>
      </div>
    </>
  );
}
