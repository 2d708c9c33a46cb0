/** The page: the list beside the session, or the login. */

import { useEffect } from "preact/hooks";
import { helpShown } from "./composer/run_command";
import { DialogsSlot } from "./dialogs_slot";
import { InspectorSlot } from "./inspector/inspector_slot";
import { show, shown, watchRoom, wide } from "./inspector/selection";
import { LoginScreen } from "./login/login_screen";
import { enter, login } from "./login/login_state";
import { listShown, searchShown } from "./navigation/panels";
import { route } from "./navigation/route";
import { waitingCount } from "./notifications/notifications";
import { ReplaySlot } from "./replay/replay_slot";
import { ListFooter } from "./screens/list_footer";
import { paletteCommands } from "./screens/palette";
import { SessionScreen } from "./screens/session_screen";
import { StageNotice } from "./screens/stage_notice";
import { StartScreen } from "./screens/start_screen";
import { SearchDialog } from "./search/search_dialog";
import { current } from "./session/current_session";
import { SessionDialogsSlot } from "./session_dialogs/session_dialogs_slot";
import { SessionList, startNew } from "./session_list/session_list";
import { SettingsSlot } from "./settings_screen/settings_slot";
import { texts } from "./texts";
import { watchFocus } from "./ui/focus";
import { Notice } from "./ui/notice";
import { watchSwipes } from "./ui/swipe";
import { UsageSlot } from "./usage_screen/usage_slot";

export function App() {
  const state = login.value;
  // Whoever opens a session can type at once: they are most likely logged in.
  if (state === "unknown" && current.value === null) return <p class="layout-centre text-dim">{texts.loading}</p>;
  return state === "needed" ? <LoginScreen /> : <Page />;
}

function Page() {
  useEffect(watchRoom, []);
  useEffect(watchFocus, []);
  useEffect(() => watchSwipes((visible) => (listShown.value = visible)), []);
  useEffect(() => {
    document.addEventListener("keydown", onShortcut);
    return () => document.removeEventListener("keydown", onShortcut);
  }, []);
  const keeper = current.value;
  // A session has it above its message box.
  const isSession = route.value.settings === null && route.value.usage === null && keeper !== null;
  const beside = shown.value && wide.value && (keeper?.store.value ?? null) !== null;
  const title = keeper?.store.value?.head.settings.value.title ?? "";
  useEffect(() => {
    document.title = texts.notifications.tabTitle(waitingCount.value, title ? `${title} · ${texts.name}` : texts.name);
  }, [title, waitingCount.value]);
  return (
    <div class={`page${listShown.value ? " is-listed" : ""}${beside ? " is-inspected" : ""}`}>
      {/* biome-ignore lint/a11y/useValidAnchor: it goes to the message box, which the address cannot name */}
      <a class="page-skip" href="#message" onClick={toMessage}>
        {texts.skip}
      </a>
      <SessionList ready={login.value === "done"} onRetry={() => void enter()} footer={<ListEnd />} />
      <div class="page-veil" onClick={() => (listShown.value = false)} />
      <main class="page-stage">
        {route.value.settings !== null ? (
          <SettingsSlot section={route.value.settings} />
        ) : route.value.usage !== null ? (
          <UsageSlot period={route.value.usage} />
        ) : keeper === null ? (
          <StartScreen />
        ) : (
          <SessionScreen key={keeper.id} keeper={keeper} />
        )}
        {isSession ? null : <StageNotice />}
      </main>
      <InspectorSlot keeper={keeper} />
      {searchShown.value ? (
        <SearchDialog commands={paletteCommands()} onClose={() => (searchShown.value = false)} />
      ) : null}
      <SessionDialogsSlot />
      <DialogsSlot />
      <ReplaySlot />
    </div>
  );
}

function ListEnd() {
  return (
    <>
      <Notice isHere={listShown.value} />
      <ListFooter />
    </>
  );
}

/** The address names the session, so the jump is done by hand. */
function toMessage(event: Event): void {
  event.preventDefault();
  document.getElementById("message")?.focus();
}

function onShortcut(event: KeyboardEvent): void {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    searchShown.value = true;
    return;
  }
  const target = event.target as HTMLElement;
  // A dialog over the list closes by itself, and first.
  if (event.key === "Escape" && listShown.value && target.closest("dialog") === null) {
    event.preventDefault();
    listShown.value = false;
    return;
  }
  const typing = target.closest("input, textarea, select, dialog, [contenteditable]") !== null;
  const plain = !(typing || event.ctrlKey || event.metaKey || event.altKey);
  if (plain && event.key === "i" && current.value !== null) {
    event.preventDefault();
    show(!shown.value);
  }
  if (!typing && event.key === "?") {
    event.preventDefault();
    helpShown.value = true;
  }
  if (plain && event.key === "n") {
    event.preventDefault();
    startNew();
    document.getElementById("message")?.focus();
  }
}
