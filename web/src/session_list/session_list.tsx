/** All sessions: grouped by day, with what each is doing, and what can be done with it. */

import type { ComponentChildren } from "preact";
import { listShown, searchShown, sessionDialog } from "../navigation/panels";
import { go } from "../navigation/route";
import { texts } from "../texts";
import { dayName } from "../texts/amounts";
import { Brand } from "../ui/brand";
import { Button } from "../ui/button";
import type { Group } from "./day_groups";
import { FolderView, openFolders } from "./folder_view";
import { selectAll, selecting, startSelecting, stopSelecting } from "./selection";
import { SelectionBar } from "./selection_bar";
import { SessionItem } from "./session_item";
import { sessions } from "./sessions";
import { tagKey } from "./tag_folders";

interface Props {
  /** Whether the list was read, so that an empty one is empty. */
  ready: boolean;
  onRetry: () => void;
  footer: ComponentChildren;
}

export function SessionList({ ready, onRetry, footer }: Props) {
  const archived = sessions.archived.value;
  const groups = sessions.groups.value;
  const folders = sessions.folders.value;
  const problem = sessions.problem.value;
  return (
    <nav id="sessions" class="session-list" aria-label={texts.list.label} onKeyDown={onKey}>
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
      {selecting.value ? (
        <SelectionBar onAll={() => selectAll(shownSessions())} />
      ) : (
        <div class="session-list-tools">
          {groups.length + folders.length > 0 ? (
            <Button kind="quiet" onClick={() => startSelecting()}>
              {texts.selecting.start}
            </Button>
          ) : null}
          <Button kind="quiet" onClick={() => (sessionDialog.value = { kind: "import" })}>
            {texts.importing.start}
          </Button>
        </div>
      )}
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
        {groups.length + folders.length === 0 && problem === null && !sessions.loading.value && ready ? (
          <p class="text-dim session-list-padded">{archived ? texts.list.emptyArchive : texts.list.empty}</p>
        ) : null}
        {groups.filter(isLead).map((group) => (
          <GroupView key={group.name} group={group} />
        ))}
        {folders.map((folder) => (
          <FolderView key={tagKey(folder.name)} folder={folder} shown={shownSessions} />
        ))}
        {groups
          .filter((group) => !isLead(group))
          .map((group) => (
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

/** What stands above the folders: pinned and active sessions. */
function isLead({ daysAgo }: Group): boolean {
  return daysAgo < 0;
}

/** All rows in their order on the screen, each once. */
function shownSessions(): readonly string[] {
  const groups = sessions.groups.value;
  const open = sessions.folders.value.filter(({ name }) => openFolders.value.has(tagKey(name)));
  const ids = [...groups.filter(isLead), ...open, ...groups.filter((group) => !isLead(group))].flatMap(
    (part) => part.ids,
  );
  return [...new Set(ids)];
}

/** While sessions are selected: Escape ends that, Ctrl+A selects all that are shown. */
function onKey(event: KeyboardEvent): void {
  if (!selecting.value) return;
  if (event.key === "Escape") stopSelecting();
  else if (event.key === "a" && (event.ctrlKey || event.metaKey)) selectAll(shownSessions());
  else return;
  event.preventDefault();
  event.stopPropagation();
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
          <SessionItem key={sessionId} id={sessionId} folder={null} shown={shownSessions} />
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
