/** A tag as a folder of the list, open or closed. Which are open is remembered in this browser. */

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { texts } from "../texts";
import { attempt } from "../ui/notice";
import { SessionItem } from "./session_item";
import { sessions } from "./sessions";
import { type Folder, tagKey } from "./tag_folders";

const KEY = "keryx.folders";

export const openFolders = signal<ReadonlySet<string>>(remembered());

export function FolderView({ folder, shown }: { folder: Folder; shown: () => readonly string[] }) {
  const key = tagKey(folder.name);
  const open = openFolders.value.has(key);
  const archived = sessions.archived.value;
  const { name, count, ids } = folder;
  useEffect(() => {
    if (open && ids.length < count) void attempt(() => sessions.loadTag(name));
  }, [open, archived, count]);
  return (
    <section aria-label={texts.tags.folder(name, count)}>
      <h2 class="session-list-folder">
        <button type="button" aria-expanded={open} onClick={() => toggle(key)}>
          <span class={open ? "session-list-arrow is-open" : "session-list-arrow"} aria-hidden="true" />
          <span class="layout-grow" dir="auto">
            {name}
          </span>
          <small>{count}</small>
        </button>
      </h2>
      {open ? (
        <ul>
          {ids.map((id) => (
            <SessionItem key={id} id={id} folder={key} shown={shown} />
          ))}
        </ul>
      ) : null}
    </section>
  );
}

function toggle(key: string): void {
  const next = new Set(openFolders.peek());
  if (!next.delete(key)) next.add(key);
  openFolders.value = next;
  try {
    localStorage.setItem(KEY, JSON.stringify([...next]));
  } catch {
    // A browser that stores nothing opens its folders anew.
  }
}

function remembered(): ReadonlySet<string> {
  try {
    const stored: unknown = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return new Set(Array.isArray(stored) ? stored.filter((name) => typeof name === "string") : []);
  } catch {
    return new Set();
  }
}
