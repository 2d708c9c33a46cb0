/** No session is open: the next one begins with what is said here. */

import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Composer } from "../composer/composer";
import { composerOf } from "../composer/composers";
import { userName } from "../login/login_state";
import { models, profiles, toolkit } from "../session/choices";
import { opening } from "../session/new_session";
import { FolderChip, ModelChip } from "../settings/choice_chips";
import { type ChosenSettings, MoreSettings } from "../settings/settings_fields";
import { DefaultModel } from "../setup/default_model";
import { offeredModels, readyModel, setup, showModels } from "../setup/setup_state";
import { Welcome } from "../setup/welcome";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { minute } from "../ui/clock";
import { Disclosure } from "../ui/disclosure";
import { fittingExamples } from "./examples";
import { ListButton } from "./header";

export function StartScreen() {
  const configuration = setup.value;
  /** While the page loads, a person may have gone elsewhere before the start is drawn in its final form. */
  const loading = useRef(configuration === null);
  return (
    <>
      <header class="header is-narrow">
        <div class="header-bar">
          <ListButton />
        </div>
      </header>
      {configuration?.configured ? (
        <Start takesFocus={!loading.current} />
      ) : (
        <>
          {configuration === null ? <div class="layout-centre" /> : <Welcome />}
          <div class="footer">
            <div class="footer-column">
              <FirstMessage takesFocus={true} />
            </div>
          </div>
        </>
      )}
    </>
  );
}

function FirstMessage({ takesFocus }: { takesFocus: boolean }) {
  return (
    <Composer
      composing={composerOf(null)}
      running={false}
      stopping={false}
      onStop={() => undefined}
      takesFocus={takesFocus}
    />
  );
}

function change(changes: ChosenSettings): void {
  const next = { ...opening.value, ...changes };
  // What is left to the server is not named at all.
  opening.value = Object.fromEntries(Object.entries(next).filter(([, value]) => value !== "" && value !== null));
}

function Start({ takesFocus }: { takesFocus: boolean }) {
  const more = useSignal(false);
  const chosen = opening.value as ChosenSettings;
  const profile = opening.value.profile ?? profiles.value.profiles[0]?.name ?? null;
  return (
    <div class="layout-centre start-screen">
      <div class="start-screen-column">
        <p class="start-screen-greeting">
          {texts.newSession.greeting(new Date(minute.value).getHours(), userName.value)}
        </p>
        <h1>{texts.newSession.title}</h1>
        <p class="text-dim" role="status">
          {readyModel.value === null ? "" : texts.setup.ready(readyModel.value)}
        </p>
        <FirstMessage takesFocus={takesFocus} />
        <div class="start-screen-chips">
          <ModelChip chosen={chosen} onChange={change} />
          <FolderChip chosen={chosen} onChange={change} />
          <span class="layout-grow" />
          <Disclosure open={more}>{texts.newSession.more}</Disclosure>
        </div>
        {/* Whoever has just entered a key chooses among its models. */}
        {readyModel.value !== null && offeredModels.value.length > 1 ? <DefaultModel /> : null}
        {more.value ? (
          <div class="start-screen-more">
            <MoreSettings chosen={chosen} profile={profile} onChange={change} />
            {readyModel.value === null && offeredModels.value.length > 1 ? <DefaultModel /> : null}
            <Button kind="quiet" onClick={showModels}>
              {texts.setup.models}
            </Button>
          </div>
        ) : (
          <Examples model={chosen.model ?? models.value.default ?? ""} />
        )}
      </div>
    </div>
  );
}

function Examples({ model }: { model: string }) {
  const composing = composerOf(null);
  // A draft is never replaced.
  if (composing.text.value !== "" || toolkit.value.tools.length === 0) return null;
  const names = new Set(toolkit.value.tools.map(({ name }) => name));
  return (
    <ul class="start-screen-examples" aria-label={texts.newSession.examples}>
      {fittingExamples(names, model).map((example) => (
        <li key={example}>
          <button
            type="button"
            onClick={() => {
              composing.type(texts.newSession.example[example]);
              document.getElementById("message")?.focus();
            }}
          >
            {texts.newSession.example[example]}
          </button>
        </li>
      ))}
    </ul>
  );
}
