/** What Ctrl+K offers to do: everything that has a place on the screen or a key, by its name. */

import { rulesShown } from "../approvals/rules_shown";
import { composerOf } from "../composer/composers";
import { SLASH_COMMANDS } from "../composer/parse_text";
import { helpShown } from "../composer/run_command";
import { show, shown } from "../inspector/selection";
import { logOut } from "../login/login_state";
import { memoryShown } from "../memory/memory_shown";
import { sessionDialog } from "../navigation/panels";
import { openSettings, openUsage } from "../navigation/route";
import type { PaletteCommand } from "../search/matching_commands";
import { current } from "../session/current_session";
import { startSelecting } from "../session_list/selection";
import { startNew } from "../session_list/session_list";
import { sessions } from "../session_list/sessions";
import { showModels } from "../setup/setup_state";
import { texts } from "../texts";
import { chooseTheme, type Theme } from "../ui/theme";
import { usageShown } from "../usage/usage_today";

export function paletteCommands(): readonly PaletteCommand[] {
  const { shortcuts, list } = texts;
  const themes = Object.entries(list.themes).map(([name, text]) => ({
    name: shortcuts.theme(text),
    run: () => chooseTheme(name as Theme),
  }));
  return [
    { name: shortcuts.newSession, keys: "N", run: startNew },
    ...(current.value === null ? [] : inSession()),
    { name: texts.setup.models, run: showModels },
    { name: list.settings, run: () => openSettings("") },
    { name: texts.usage.title, run: () => (usageShown.value = true) },
    { name: texts.usage.charts, run: openUsage },
    { name: texts.memory.title, run: () => (memoryShown.value = true) },
    { name: texts.rules.title, run: () => (rulesShown.value = true) },
    { name: shortcuts.keys, keys: "?", run: () => (helpShown.value = true) },
    { name: texts.importing.title, run: () => (sessionDialog.value = { kind: "import" }) },
    { name: texts.selecting.start, run: () => startSelecting() },
    { name: shortcuts.archived, run: () => void sessions.showArchived(true) },
    ...themes,
    { name: list.signOut, run: () => void logOut() },
  ];
}

/** What is done with the session on screen. A command that takes a value is put into the message box. */
function inSession(): PaletteCommand[] {
  const { id } = current.value!;
  const slash = SLASH_COMMANDS.filter(({ name }) => name !== "help").map(({ name }) => ({
    name: `/${name} · ${texts.commands.about[name]}`,
    run: () => {
      composerOf(id).type(`/${name} `);
      document.getElementById("message")?.focus();
    },
  }));
  return [
    { name: texts.shortcuts.toggleInspector, keys: "I", run: () => show(!shown.value) },
    { name: texts.sharing.title, run: () => (sessionDialog.value = { kind: "share", id }) },
    { name: texts.exporting.title, run: () => (sessionDialog.value = { kind: "export", ids: [id] }) },
    ...slash,
  ];
}
