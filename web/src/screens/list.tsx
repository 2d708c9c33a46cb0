/** All sessions: grouped by day, with what each is doing, and what can be done with it. */

import { useState } from "preact/hooks";
import { rulesShown } from "../approvals/rules";
import * as keryx from "../api/keryx";
import type { Changes, Summary } from "../api/shapes";
import { Brand } from "../parts/brand";
import { Button } from "../parts/button";
import { Dialog } from "../parts/dialog";
import { attempt, enter, listShown, login, logOut, searchShown, sessions } from "../state/app";
import { minute } from "../state/clock";
import type { Group } from "../state/groups";
import { go, route } from "../state/route";
import { canTell, chooseTelling, tells } from "../state/telling";
import { chooseTheme, theme, type Theme } from "../state/theme";
import { texts } from "../texts";
import { clockTime, dayName } from "../texts/amounts";
import { UsageButton } from "../usage/chip";

export function SessionList() {
  const archived = sessions.archived.value;
  const groups = sessions.groups.value;
  const problem = sessions.problem.value;
  return (
    <nav id="sessions" class="list" aria-label={texts.list.label}>
      <div class="brandline">
        <Brand />
        <button
          type="button"
          class="btn burger"
          onClick={() => {
            listShown.value = false;
          }}
          aria-label={texts.list.close}
        >
          <span aria-hidden="true">✕</span>
        </button>
      </div>
      <button type="button" class="new" aria-keyshortcuts="n" onClick={startNew}>
        <span aria-hidden="true">+</span>
        <span class="grow">{texts.list.newSession}</span>
        <kbd aria-hidden="true">N</kbd>
      </button>
      <button type="button" class="find" aria-keyshortcuts="Control+K" onClick={() => (searchShown.value = true)}>
        <span class="grow">{texts.list.search}</span>
        <kbd aria-hidden="true">{texts.list.searchKeys}</kbd>
      </button>
      <div class="groups">
        {sessions.connection.value === "lost" ? <p class="lost">{texts.connection.lost}</p> : null}
        {problem === null ? null : (
          <div class="pad">
            <p class="failure">{problem.kind === "unreachable" ? texts.unreachable : problem.message}</p>
            <Button kind="quiet" onClick={() => void enter()}>
              {texts.retry}
            </Button>
          </div>
        )}
        {groups.length === 0 && problem === null && !sessions.loading.value && login.value === "done" ? (
          <p class="dim pad">{archived ? texts.list.emptyArchive : texts.list.empty}</p>
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
      <Foot archived={archived} />
    </nav>
  );
}

export function startNew(): void {
  go(null);
  listShown.value = false;
}

function Foot({ archived }: { archived: boolean }) {
  return (
    <div class="foot">
      <div class="footline">
        <UsageButton />
        <Button kind="quiet" title={texts.rules.lead} onClick={() => (rulesShown.value = true)}>
          {texts.rules.title}
        </Button>
        {canTell ? (
          <Button
            kind="quiet"
            pressed={tells.value}
            title={texts.notifications.about}
            onClick={() => void attempt(() => chooseTelling(!tells.value))}
          >
            <span class={tells.value ? "switch on" : "switch"} aria-hidden="true" /> {texts.notifications.label}
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
      <Button kind="quiet" onClick={() => void logOut()}>
        {texts.list.signOut}
      </Button>
    </div>
  );
}

function GroupView({ group }: { group: Group }) {
  const id = `group-${group.name}`;
  return (
    <section aria-labelledby={id}>
      <h2 id={id}>{groupName(group)}</h2>
      <ul>
        {group.ids.map((each) => (
          <Item key={each} id={each} />
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
  const change = (changes: Changes): void => {
    setDoing("nothing");
    void attempt(() => keryx.changeSession(id, changes));
  };
  return (
    <li class={on ? "s on" : "s"}>
      {doing === "renaming" ? (
        <Rename title={summary.title} onDone={(next) => (next === null ? setDoing("nothing") : change({ title: next }))} />
      ) : (
        <>
          <button
            type="button"
            class="open"
            aria-current={on ? "page" : undefined}
            onClick={() => {
              go(id);
              listShown.value = false;
            }}
          >
            <Dot summary={summary} />
            <b>{title}</b>
            <When summary={summary} />
          </button>
          <button
            type="button"
            class="quiet dots"
            aria-expanded={doing === "choosing"}
            aria-label={texts.list.actions(title)}
            onClick={() => setDoing(doing === "choosing" ? "nothing" : "choosing")}
          >
            ⋯
          </button>
        </>
      )}
      {doing === "choosing" ? (
        <div class="choices">
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

function Dot({ summary }: { summary: Summary }) {
  if (summary.state === "running") return <span class="dot run" aria-hidden="true" />;
  if (summary.state === "waiting") return <span class="dot wait" aria-hidden="true" />;
  const bad = summary.failed || summary.state === "damaged";
  return <span class={bad ? "dot bad" : "dot"} aria-hidden="true" />;
}

function When({ summary }: { summary: Summary }) {
  const { state, failed, changed_at } = summary;
  if (state === "waiting") return <small class="wait">{texts.list.waiting}</small>;
  if (state === "running") return <small class="run">{texts.list.running}</small>;
  if (state === "damaged") return <small class="bad">{texts.list.damaged}</small>;
  if (failed) return <small class="bad">{texts.list.failed}</small>;
  const fresh = minute.value / 1_000 - changed_at < 60;
  return <small>{fresh ? texts.list.now : clockTime(changed_at)}</small>;
}

function Rename({ title, onDone }: { title: string; onDone: (title: string | null) => void }) {
  const [text, setText] = useState(title);
  return (
    <form
      class="rename"
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
      <div class="btns">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button kind="stop" onClick={() => void remove()}>
          {texts.deletion.confirm}
        </Button>
      </div>
    </Dialog>
  );
}
