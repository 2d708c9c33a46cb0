/** Above the transcript: what the session is called, what it works with, what it has used. */

import { useRef, useState } from "preact/hooks";
import * as keryx from "../api/keryx";
import { InspectorButton } from "../inspector/slot";
import type { Changes } from "../api/shapes";
import { Button } from "../parts/button";
import { showModels } from "../setup/steps";
import { attempt, listShown } from "../state/app";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { UsageChip } from "../usage/chip";
import { Fields } from "./settings";

export function ListButton() {
  return (
    <button
      type="button"
      class="btn burger"
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

export function Header({ opened }: { opened: Opened }) {
  const [open, setOpen] = useState(false);
  const dots = useRef<HTMLButtonElement>(null);
  const close = (): void => {
    setOpen(false);
    dots.current?.focus();
  };
  const settings = opened.head.settings.value;
  const change = (changes: Changes): void => void attempt(() => keryx.changeSession(opened.id, changes));
  /** What it is, all of it, and the part of it that there is room for. */
  const chips: [string, string, string][] = [
    [texts.settings.workspace, settings.workspace, folderName(settings.workspace)],
    [texts.settings.model, settings.model, settings.model.replace(/^\w+:/, "")],
    [texts.settings.personality, settings.personality ?? "", settings.personality ?? ""],
    [texts.settings.effort, settings.effort ?? "", settings.effort ?? ""],
  ];
  return (
    <header
      class="head"
      onKeyDown={(event) => {
        // Of what lies open here first: the turn goes on.
        if (event.key !== "Escape" || event.defaultPrevented || !open) return;
        event.preventDefault();
        close();
      }}
    >
      <div class="bar">
        <ListButton />
        <h1>{settings.title || texts.list.untitled}</h1>
        <span class="grow" />
        {chips.map(([name, value, short]) =>
          value ? (
            <button
              type="button"
              key={name}
              class={name === texts.settings.workspace || name === texts.settings.model ? "chip w whole" : "chip w"}
              aria-label={texts.settings.change(name, value)}
              title={value}
              onClick={() => setOpen(!open)}
            >
              {short}
            </button>
          ) : null,
        )}
        <UsageChip opened={opened} />
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
        <section class="panel" aria-label={texts.settings.label}>
          <label>
            <span>{texts.settings.title}</span>
            <input value={settings.title} onChange={(event) => change({ title: event.currentTarget.value })} />
          </label>
          <Fields chosen={settings} profile={settings.profile} onChange={change} />
          <label class="check">
            <input
              type="checkbox"
              checked={settings.read_only}
              onChange={(event) => change({ read_only: event.currentTarget.checked })}
            />
            <span>{texts.settings.readOnly}</span>
          </label>
          <div class="btns">
            <Button kind="quiet" onClick={showModels}>
              {texts.setup.models}
            </Button>
            <span class="grow" />
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
