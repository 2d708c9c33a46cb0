/** One session of the list: what it is doing, what can be done with it, and its box while several are selected. */

import { useLayoutEffect, useRef } from "preact/hooks";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import type { SessionSummary, SettingsChanges } from "../api/types";
import { listShown, type SessionDialog, sessionDialog } from "../navigation/panels";
import { go, route } from "../navigation/route";
import { texts } from "../texts";
import { clockTime } from "../texts/amounts";
import { Button } from "../ui/button";
import { minute } from "../ui/clock";
import { Dialog } from "../ui/dialog";
import { attempt } from "../ui/notice";
import { act, actionOf, rowOf } from "./row_actions";
import { select, selected, selecting, startSelecting } from "./selection";
import { sessions } from "./sessions";

interface Props {
  id: string;
  /** The key of the folder that it is shown in; null: it is a row of the days. */
  folder: string | null;
  /** All rows that are now shown, in their order: a range goes over them. */
  shown: () => readonly string[];
}

export function SessionItem({ id, folder, shown }: Props) {
  const row = rowOf(id, folder);
  const action = actionOf(row);
  const done = (): void => act(row, null);
  const summary = sessions.summary(id)?.value;
  if (summary === undefined) return null;
  const title = summary.title || texts.list.untitled;
  const on = route.value.session === id;
  if (selecting.value) return <Choice summary={summary} title={title} shown={shown} />;
  const change = (changes: SettingsChanges): void => {
    done();
    void attempt(() => keryx.changeSession(id, changes));
  };
  const rename = async (next: string | null): Promise<void> => {
    if (next === null || (await attempt(() => keryx.changeSession(id, { title: next })))) done();
  };
  const show = (dialog: SessionDialog): void => {
    done();
    sessionDialog.value = dialog;
  };
  return (
    <li
      class={on ? "session-list-item is-current" : "session-list-item"}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || action?.kind !== "choosing") return;
        event.preventDefault();
        event.stopPropagation();
        done();
      }}
    >
      {action?.kind === "renaming" ? (
        <Rename
          title={summary.title}
          text={action.title}
          onText={(text) => act(row, { kind: "renaming", title: text })}
          onDone={(next) => void rename(next)}
        />
      ) : (
        <>
          <button
            type="button"
            class="session-list-open"
            aria-current={on ? "page" : undefined}
            onClick={(event) => {
              if (event.shiftKey || event.ctrlKey || event.metaKey) return startSelecting(id);
              go(id);
              listShown.value = false;
            }}
          >
            <Dot summary={summary} />
            <b dir="auto">{title}</b>
            <When summary={summary} />
            <small class="session-list-about" dir="auto">
              {about(summary)}
            </small>
          </button>
          <button
            type="button"
            class="button-quiet session-list-dots"
            aria-expanded={action?.kind === "choosing"}
            aria-label={texts.list.actions(title)}
            onClick={() => act(row, action?.kind === "choosing" ? null : { kind: "choosing" })}
          >
            ⋯
          </button>
        </>
      )}
      {action?.kind === "choosing" ? (
        <div class="session-list-choices">
          <Button kind="quiet" onClick={() => act(row, { kind: "renaming", title: summary.title })}>
            {texts.list.rename}
          </Button>
          <Button kind="quiet" onClick={() => change({ pinned: !summary.pinned })}>
            {summary.pinned ? texts.list.unpin : texts.list.pin}
          </Button>
          <Button kind="quiet" onClick={() => show({ kind: "tags", ids: [id] })}>
            {texts.list.tags}
          </Button>
          <Button kind="quiet" onClick={() => void duplicate(id, title).then(done)}>
            {texts.list.duplicate}
          </Button>
          <Button kind="quiet" onClick={() => show({ kind: "export", ids: [id] })}>
            {texts.list.export}
          </Button>
          <Button kind="quiet" onClick={() => show({ kind: "share", id })}>
            {texts.list.share}
          </Button>
          <Button kind="quiet" onClick={() => change({ archived: !summary.archived })}>
            {summary.archived ? texts.list.unarchive : texts.list.archive}
          </Button>
          <Button kind="quiet" onClick={() => act(row, { kind: "deleting" })}>
            {texts.list.delete}
          </Button>
        </div>
      ) : null}
      {action?.kind === "deleting" ? <Deletion id={id} title={title} onClose={done} /> : null}
    </li>
  );
}

/** A row that is selected or not, in place of one that is opened. */
function Choice({ summary, title, shown }: { summary: SessionSummary; title: string } & Pick<Props, "shown">) {
  const id = summary.session_id;
  const on = selected.value.has(id);
  return (
    <li class={on ? "session-list-item is-selected" : "session-list-item"}>
      <button
        type="button"
        role="checkbox"
        class="session-list-open"
        aria-checked={on}
        onClick={(event) => select(id, shown(), event.shiftKey)}
      >
        <span class={on ? "session-list-check is-on" : "session-list-check"} aria-hidden="true" />
        <b dir="auto">{title}</b>
        <When summary={summary} />
        <small class="session-list-about" dir="auto">
          {about(summary)}
        </small>
      </button>
    </li>
  );
}

/** A session with the same past, which begins where the last turn ended. */
async function duplicate(id: string, title: string): Promise<void> {
  const copy = newSessionId();
  if (!(await attempt(() => keryx.fork(id, null, copy, texts.list.copyOf(title))))) return;
  go(copy);
  listShown.value = false;
}

/** What it works on: the end of its folder's path, and its model without the provider. */
function about({ workspace, model }: SessionSummary): string {
  const folder = workspace.split("/").filter(Boolean).at(-1) ?? "";
  return [folder, model.replace(/^\w+:/, "")].filter(Boolean).join(" · ");
}

function Dot({ summary }: { summary: SessionSummary }) {
  if (summary.state === "running") return <span class="session-list-dot is-running" aria-hidden="true" />;
  if (summary.state === "waiting") return <span class="session-list-dot is-waiting" aria-hidden="true" />;
  const bad = summary.failed || summary.state === "damaged";
  return <span class={bad ? "session-list-dot is-bad" : "session-list-dot"} aria-hidden="true" />;
}

function When({ summary }: { summary: SessionSummary }) {
  const { state, failed, changed_at } = summary;
  if (state === "waiting") return <small class="is-waiting">{texts.list.waiting}</small>;
  if (state === "running") return <small class="is-running">{texts.list.running}</small>;
  if (state === "damaged") return <small class="is-bad">{texts.list.damaged}</small>;
  if (failed) return <small class="is-bad">{texts.list.failed}</small>;
  const fresh = minute.value / 1_000 - changed_at < 60;
  return <small>{fresh ? texts.list.now : clockTime(changed_at)}</small>;
}

interface RenameProps {
  title: string;
  /** What is typed so far. */
  text: string;
  onText: (text: string) => void;
  onDone: (title: string | null) => void;
}

function Rename({ title, text, onText, onDone }: RenameProps) {
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  return (
    <form
      class="session-list-rename"
      onSubmit={(event) => {
        event.preventDefault();
        onDone(text.trim() === title ? null : text.trim());
      }}
    >
      <input
        dir="auto"
        aria-label={texts.list.title}
        value={text}
        ref={field}
        onInput={(event) => onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Escape") return;
          event.preventDefault();
          onDone(null);
        }}
      />
      <Button type="submit">{texts.save}</Button>
    </form>
  );
}

function Deletion({ id, title, onClose }: { id: string; title: string; onClose: () => void }) {
  const remove = async (): Promise<void> => {
    if (await attempt(() => keryx.deleteSession(id))) sessions.forget(id);
    onClose();
  };
  return (
    <Dialog title={texts.deletion.title} onClose={onClose}>
      <h2>{texts.deletion.title}</h2>
      <p>{texts.deletion.body(title)}</p>
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button kind="stop" onClick={() => void remove()}>
          {texts.deletion.confirm}
        </Button>
      </div>
    </Dialog>
  );
}
