/** Above the transcript: what the session is called, what it works with, what it has used. */

import { useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { SettingsChanges } from "../api/types";
import { InspectorButton } from "../inspector/inspector_slot";
import { listShown, sessionDialog } from "../navigation/panels";
import type { SessionStore } from "../session/session_store";
import { SettingsFields } from "../settings/settings_fields";
import { showModels } from "../setup/setup_state";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { UsageChip } from "../usage/usage_chip";

export function ListButton() {
  return (
    <button
      type="button"
      class="button button-burger"
      aria-expanded={listShown.value}
      aria-controls="sessions"
      aria-label={texts.list.open}
      onClick={() => {
        listShown.value = true;
      }}
    >
      <span aria-hidden="true">☰</span>
    </button>
  );
}

export function Header({ session }: { session: SessionStore }) {
  const [open, setOpen] = useState(false);
  const dots = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    dots.current?.focus();
  };
  const settings = session.head.settings.value;
  const change = (changes: SettingsChanges): void => void attempt(() => keryx.changeSession(session.id, changes));
  /** What it is, all of it, and the part of it that there is room for. */
  const chips: [string, string, string][] = [
    [texts.settings.workspace, settings.workspace, folderName(settings.workspace)],
    [texts.settings.model, settings.model, settings.model.replace(/^\w+:/, "")],
    [texts.settings.personality, settings.personality ?? "", settings.personality ?? ""],
    [texts.settings.effort, settings.effort ?? "", settings.effort ?? ""],
  ];
  return (
    <header
      class="header"
      onKeyDown={(event) => {
        // Of what lies open here first: the turn goes on.
        if (event.key !== "Escape" || event.defaultPrevented || !open) return;
        event.preventDefault();
        close();
      }}
    >
      <div class="header-bar">
        <ListButton />
        <h1 dir="auto">{settings.title || texts.list.untitled}</h1>
        <span class="layout-grow" />
        {chips.map(([name, value, short]) =>
          value ? (
            <button
              type="button"
              key={name}
              class={
                name === texts.settings.workspace || name === texts.settings.model
                  ? "chip is-shrinking is-whole"
                  : "chip is-shrinking"
              }
              dir="auto"
              aria-label={texts.settings.change(name, value)}
              title={value}
              onClick={() => setOpen(!open)}
            >
              {short}
            </button>
          ) : null,
        )}
        <UsageChip session={session} />
        <button
          ref={dots}
          type="button"
          class="chip"
          aria-expanded={open}
          aria-label={texts.settings.label}
          title={texts.settings.label}
          onClick={() => setOpen(!open)}
        >
          <span aria-hidden="true">⋯</span>
        </button>
        <InspectorButton />
      </div>
      {open ? (
        <section class="header-panel" aria-label={texts.settings.label}>
          <label>
            <span>{texts.settings.title}</span>
            <input
              dir="auto"
              value={settings.title}
              onChange={(event) => change({ title: event.currentTarget.value })}
            />
          </label>
          <SettingsFields chosen={settings} profile={settings.profile} onChange={change} />
          <label class="fields-check">
            <input
              type="checkbox"
              checked={settings.read_only}
              onChange={(event) => change({ read_only: event.currentTarget.checked })}
            />
            <span>{texts.settings.readOnly}</span>
          </label>
          <div class="layout-buttons">
            <Button kind="quiet" onClick={showModels}>
              {texts.setup.models}
            </Button>
            <Button kind="quiet" onClick={() => (sessionDialog.value = { kind: "export", ids: [session.id] })}>
              {texts.list.export}
            </Button>
            <Button kind="quiet" onClick={() => (sessionDialog.value = { kind: "share", id: session.id })}>
              {texts.list.share}
            </Button>
            <span class="layout-grow" />
            <Button onClick={close}>{texts.close}</Button>
          </div>
        </section>
      ) : null}
    </header>
  );
}

/** The end of a path is what tells it from others. */
function folderName(path: string): string {
  return path.split("/").filter(Boolean).at(-1) ?? path;
}
