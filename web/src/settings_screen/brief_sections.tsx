/** Sections that mostly show what other parts of the page have. */

import { useEffect } from "preact/hooks";
import * as keryx from "../api/client";
import { RulesList } from "../approvals/rules_list";
import { memoryShown } from "../memory/memory_shown";
import { canNotify, notifying, setNotifying } from "../notifications/notifications";
import { ShareLinks } from "../session_dialogs/share_links";
import { DefaultModel } from "../setup/default_model";
import { lookForModels } from "../setup/setup_state";
import { texts } from "../texts";
import { configuration as words } from "../texts/configuration";
import { chooseLanguage, chosenLanguage, LANGUAGES, type Language } from "../texts/language";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { Refusal } from "../ui/refusal";
import { chooseTheme, type Theme, theme } from "../ui/theme";
import { useRequest } from "../ui/use_request";
import { config } from "./config_state";

export function ModelsSection() {
  useEffect(() => void lookForModels(), []);
  const fixed = config.value?.fixed.find(({ path }) => path.length === 1 && path[0] === "model");
  return fixed === undefined ? (
    <DefaultModel />
  ) : (
    <div class="setting-field">
      <b>{texts.setup.defaultModel}</b>
      <p class="setting-field-fixed">{words.setBy(fixed.by, fixed.value)}</p>
    </div>
  );
}

export function ApprovalsSection() {
  return (
    <div class="settings-screen-part">
      <RulesList />
    </div>
  );
}

export function MemorySection() {
  return (
    <div class="settings-screen-part">
      <Button onClick={() => (memoryShown.value = true)}>{words.memory.open}</Button>
    </div>
  );
}

export function AppearanceSection() {
  return (
    <div class="setting-field">
      <label>
        <span>{texts.list.theme}</span>
        <select value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
          {Object.entries(texts.list.themes).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        <span>{texts.list.language}</span>
        <select value={chosenLanguage()} onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}>
          {Object.entries(LANGUAGES).map(([code, name]) => (
            <option key={code} value={code}>
              {name}
            </option>
          ))}
        </select>
      </label>
    </div>
  );
}

export function SharesSection() {
  const links = useRequest(() => keryx.allShares(), []);
  return (
    <div class="settings-screen-part">
      {links.problem === null ? null : <Refusal problem={links.problem} />}
      {links.value === null ? null : <ShareLinks titled links={links.value.shares} onChange={links.again} />}
    </div>
  );
}

export function NotificationsSection() {
  return (
    <div class="setting-field">
      <label class="fields-check">
        <input
          type="checkbox"
          checked={notifying.value}
          disabled={!canNotify}
          onChange={(event) => {
            const on = event.currentTarget.checked;
            void attempt(() => setNotifying(on));
          }}
        />
        <span>{texts.notifications.label}</span>
      </label>
      <p class="setting-field-help">{canNotify ? texts.notifications.about : texts.notifications.blocked}</p>
    </div>
  );
}
