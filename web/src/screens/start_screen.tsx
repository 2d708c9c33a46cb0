/** No session is open: the next one begins with what is said here. */

import { Composer } from "../composer/composer";
import { composerOf } from "../composer/composers";
import { profiles } from "../session/choices";
import { opening } from "../session/new_session";
import { type ChosenSettings, SettingsFields } from "../settings/settings_fields";
import { DefaultModel } from "../setup/default_model";
import { offeredModels, readyModel, setup, showModels } from "../setup/setup_state";
import { Welcome } from "../setup/welcome";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { ListButton } from "./header";

export function StartScreen() {
  const configuration = setup.value;
  return (
    <>
      <header class="header is-narrow">
        <div class="header-bar">
          <ListButton />
        </div>
      </header>
      {configuration === null ? <div class="layout-centre" /> : configuration.configured ? <Start /> : <Welcome />}
      <div class="footer">
        <div class="footer-column">
          <Composer composing={composerOf(null)} running={false} stopping={false} onStop={() => undefined} />
        </div>
      </div>
    </>
  );
}

function Start() {
  const change = (changes: ChosenSettings): void => {
    const next = { ...opening.value, ...changes };
    // What is left to the server is not named at all.
    opening.value = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "" && value !== null));
  };
  return (
    <div class="layout-centre start-screen">
      <h1>{texts.newSession.title}</h1>
      <p class="text-dim" role="status">
        {readyModel.value === null ? "" : `${texts.setup.ready(readyModel.value)} `}
        {texts.newSession.lead}
      </p>
      <SettingsFields
        chosen={opening.value as ChosenSettings}
        profile={opening.value.profile ?? profiles.value.profiles[0]?.name ?? null}
        onChange={change}
      />
      {offeredModels.value.length > 1 ? <DefaultModel /> : null}
      <Button kind="quiet" onClick={showModels}>
        {texts.setup.models}
      </Button>
    </div>
  );
}
