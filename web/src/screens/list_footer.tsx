/** Below the list of sessions: usage, the settings, the memory, notifications, the archive, the theme, the way out. */

import { logOut, userName } from "../login/login_state";
import { memoryShown } from "../memory/memory_shown";
import { listShown } from "../navigation/panels";
import { openSettings } from "../navigation/route";
import { canNotify, notifying, setNotifying } from "../notifications/notifications";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { chooseLanguage, chosenLanguage, LANGUAGES, type Language } from "../texts/language";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { chooseTheme, type Theme, theme } from "../ui/theme";
import { UsageButton } from "../usage/usage_chip";

/** The list lies over the screen if that is narrow. */
function showSettings(): void {
  listShown.value = false;
  openSettings("");
}

export function ListFooter() {
  const archived = sessions.archived.value;
  return (
    <div class="list-footer">
      <div class="list-footer-row">
        <UsageButton />
        <Button kind="quiet" onClick={showSettings}>
          {texts.list.settings}
        </Button>
        <Button kind="quiet" title={texts.memory.lead} onClick={() => (memoryShown.value = true)}>
          {texts.memory.title}
        </Button>
        {canNotify ? (
          <Button
            kind="quiet"
            pressed={notifying.value}
            title={texts.notifications.about}
            onClick={() => void attempt(() => setNotifying(!notifying.value))}
          >
            <span class={notifying.value ? "list-footer-switch is-on" : "list-footer-switch"} aria-hidden="true" />{" "}
            {texts.notifications.label}
          </Button>
        ) : null}
      </div>
      <Button kind="quiet" pressed={archived} onClick={() => void sessions.showArchived(!archived)}>
        {archived ? texts.list.backFromArchive : texts.list.archived}
      </Button>
      <select
        aria-label={texts.list.theme}
        value={theme.value}
        onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}
      >
        {Object.entries(texts.list.themes).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
      <select
        aria-label={texts.list.language}
        value={chosenLanguage()}
        onChange={(event) => chooseLanguage(event.currentTarget.value as Language)}
      >
        {Object.entries(LANGUAGES).map(([code, name]) => (
          <option key={code} value={code}>
            {name}
          </option>
        ))}
      </select>
      <Button kind="quiet" onClick={() => void logOut()}>
        {userName.value === null ? texts.list.signOut : texts.login.signOut(userName.value)}
      </Button>
    </div>
  );
}
