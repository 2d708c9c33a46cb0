/** All sessions: grouped by day, with what each is doing, and what can be done with it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { SessionSummary, SettingsChanges } from "../api/types";
import { listShown, searchShown } from "../navigation/panels";
import { go, route } from "../navigation/route";
import { texts } from "../texts";
import { clockTime, dayName } from "../texts/amounts";
import { Brand } from "../ui/brand";
import { Button } from "../ui/button";
import { minute } from "../ui/clock";
import { Dialog } from "../ui/dialog";
import { attempt } from "../ui/notice";
import type { Group } from "./day_groups";
import { sessions } from "./sessions";

interface Props {
  /** Whether the list was read, so that an empty one is empty. */
  ready: boolean;
  onRetry: () => void;
  footer: ComponentChildren;
}

export function SessionList({ ready, onRetry, footer }: Props) {
  const archived = sessions.archived.value;
  const groups = sessions.groups.value;
  const problem = sessions.problem.value;
  return (
    <nav id="sessions" class="session-list" aria-label={texts.list.label}>
      <div class="session-list-head">
        <Brand />
        <button
          type="button"
          class="button button-burger"
          onClick={() => {
            listShown.value = false;
          }}
          aria-label={texts.list.close}
        >
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      <button type="button" class="session-list-new" aria-keyshortcuts="n" onClick={startNew}>
        <span aria-hidden="true">+</span>
        <span class="layout-grow">{texts.list.newSession}</span>
        <kbd aria-hidden="true">N</kbd>
      </button>
      <button
        type="button"
        class="session-list-search"
        aria-keyshortcuts="Control+K"
        onClick={() => (searchShown.value = true)}
      >
        <span class="layout-grow">{texts.list.search}</span>
        <kbd aria-hidden="true">{texts.list.searchKeys}</kbd>
      </button>
      <div class="session-list-groups">
        {sessions.connection.value === "lost" ? <p class="text-lost">{texts.connection.lost}</p> : null}
        {problem === null ? null : (
          <div class="session-list-padded">
            <p class="text-error">{problem.kind === "unreachable" ? texts.unreachable : problem.message}</p>
            <Button kind="quiet" onClick={onRetry}>
              {texts.retry}
            </Button>
          </div>
        )}
        {groups.length === 0 && problem === null && !sessions.loading.value && ready ? (
          <p class="text-dim session-list-padded">{archived ? texts.list.emptyArchive : texts.list.empty}</p>
        ) : null}
        {groups.map((group) => (
          <GroupView key={group.name} group={group} />
        ))}
        {sessions.more.value ? (
          <Button kind="quiet" disabled={sessions.loading.value} onClick={() => void sessions.loadMore()}>
            {texts.list.more}
          </Button>
        ) : null}
      </div>
      {footer}
    </nav>
  );
}

export function startNew(): void {
  go(null);
  listShown.value = false;
}

function GroupView({ group }: { group: Group }) {
  const id = `group-${group.name}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{groupName(group)}</h2>
      <ul>
        {group.ids.map((sessionId) => (
          <Item key={sessionId} id={sessionId} />
        ))}
      </ul>
    </section>
  );
}

function groupName({ name, daysAgo }: Group): string {
  if (name === "pinned") return texts.list.pinned;
  if (name === "active") return texts.list.active;
  if (daysAgo === 0) return texts.list.today;
  if (daysAgo === 1) return texts.list.yesterday;
  return dayName(new Date(`${name}T12:00`).getTime() / 1_000);
}

function Item({ id }: { id: string }) {
  const [doing, setDoing] = useState<"nothing" | "choosing" | "renaming" | "deleting">("nothing");
  const summary = sessions.summary(id)?.value;
  if (summary === undefined) return null;
  const title = summary.title || texts.list.untitled;
  const on = route.value.session === id;
  const change = (changes: SettingsChanges): void => {
    setDoing("nothing");
    void attempt(() => keryx.changeSession(id, changes));
  };
  return (
    <li
      class={on ? "session-list-item is-current" : "session-list-item"}
      onKeyDown={(event) => {
        if (event.key !== "Escape" || doing !== "choosing") return;
        event.preventDefault();
        event.stopPropagation();
        setDoing("nothing");
      }}
    >
      {doing === "renaming" ? (
        <Rename
          title={summary.title}
          onDone={(next) => (next === null ? setDoing("nothing") : change({ title: next }))}
        />
      ) : (
        <>
          <button
            type="button"
            class="session-list-open"
            aria-current={on ? "page" : undefined}
            onClick={() => {
              go(id);
              listShown.value = false;
            }}
          >
            <Dot summary={summary} />
            <b dir="auto">{title}</b>
            <When summary={summary} />
            <small class="session-list-about">{about(summary)}</small>
          </button>
          <button
            type="button"
            class="button-quiet session-list-dots"
            aria-expanded={doing === "choosing"}
            aria-label={texts.list.actions(title)}
            onClick={() => setDoing(doing === "choosing" ? "nothing" : "choosing")}
          >
            ⋯
          </button>
        </>
      )}
      {doing === "choosing" ? (
        <div class="session-list-choices">
          <Button kind="quiet" onClick={() => setDoing("renaming")}>
            {texts.list.rename}
          </Button>
          <Button kind="quiet" onClick={() => change({ pinned: !summary.pinned })}>
            {summary.pinned ? texts.list.unpin : texts.list.pin}
          </Button>
          <Button kind="quiet" onClick={() => change({ archived: !summary.archived })}>
            {summary.archived ? texts.list.unarchive : texts.list.archive}
          </Button>
          <Button kind="quiet" onClick={() => setDoing("deleting")}>
            {texts.list.delete}
          </Button>
        </div>
      ) : null}
      {doing === "deleting" ? <Deletion id={id} title={title} onClose={() => setDoing("nothing")} /> : null}
    </li>
  );
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

function Rename({ title, onDone }: { title: string; onDone: (title: string | null) => void }) {
  const [text, setText] = useState(title);
  return (
    <form
      class="session-list-rename"
      onSubmit={(event) => {
        event.preventDefault();
        onDone(text.trim() === title ? null : text.trim());
      }}
    >
      <input
        aria-label={texts.list.title}
        value={text}
        ref={(field) => field?.focus()}
        onInput={(event) => setText(event.currentTarget.value)}
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
    if (!(await attempt(() => keryx.deleteSession(id)))) return onClose();
    sessions.forget(id);
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
