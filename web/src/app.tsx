/** The page: the list beside the session, or the login. */

import { useEffect } from "preact/hooks";
import { RulesDialog } from "./approvals/dialog";
import { show, shown, watchRoom, wide } from "./inspector/choice";
import { InspectorSlot } from "./inspector/slot";
import { watchFocus } from "./parts/focus";
import { EmptyScreen } from "./screens/empty";
import { SessionList, startNew } from "./screens/list";
import { LoginScreen } from "./screens/login";
import { Search } from "./screens/search";
import { SessionScreen } from "./screens/session";
import { ModelsDialog } from "./setup/dialog";
import { current, listShown, login, notice, searchShown } from "./state/app";
import { asking } from "./state/telling";
import { texts } from "./texts";
import { UsageDialog } from "./usage/usage";

export function App() {
  const state = login.value;
  // Whoever opens a session can type at once: they are most likely logged in.
  if (state === "unknown" && current.value === null) return <p class="centre dim">{texts.loading}</p>;
  return state === "needed" ? <LoginScreen /> : <Page />;
}

function Page() {
  useEffect(watchRoom, []);
  useEffect(watchFocus, []);
  useEffect(() => {
    document.addEventListener("keydown", onShortcut);
    return () => document.removeEventListener("keydown", onShortcut);
  }, []);
  const keeper = current.value;
  const beside = shown.value && wide.value && (keeper?.opened.value ?? null) !== null;
  const title = keeper?.opened.value?.head.settings.value.title ?? "";
  useEffect(() => {
    document.title = texts.notifications.tabTitle(asking.value, title ? `${title} · ${texts.name}` : texts.name);
  }, [title, asking.value]);
  return (
    <div class={`page${listShown.value ? " listed" : ""}${beside ? " inspected" : ""}`}>
      <a class="skip" href="#message" onClick={toMessage}>
        {texts.skip}
      </a>
      <SessionList />
      <div class="veil" onClick={() => (listShown.value = false)} />
      <main class="stage">{keeper === null ? <EmptyScreen /> : <SessionScreen key={keeper.id} keeper={keeper} />}</main>
      <InspectorSlot keeper={keeper} />
      {searchShown.value ? <Search onClose={() => (searchShown.value = false)} /> : null}
      <UsageDialog />
      <RulesDialog />
      <ModelsDialog />
      <Notice />
    </div>
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
  if (event.key === "Escape" && listShown.value) {
    event.preventDefault();
    listShown.value = false;
    return;
  }
  const target = event.target as HTMLElement;
  const typing = target.closest("input, textarea, select, dialog, [contenteditable]") !== null;
  const plain = !typing && !event.ctrlKey && !event.metaKey && !event.altKey;
  if (plain && event.key === "i" && current.value !== null) {
    event.preventDefault();
    show(!shown.value);
  }
  if (plain && event.key === "n") {
    event.preventDefault();
    startNew();
    document.getElementById("message")?.focus();
  }
}

function Notice() {
  const problem = notice.value;
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <div class="notice" role="alert">
      <span>{texts.problem(message, problem.hint)}</span>
      <button type="button" class="quiet" onClick={() => (notice.value = null)}>
        {texts.dismiss}
      </button>
    </div>
  );
}
