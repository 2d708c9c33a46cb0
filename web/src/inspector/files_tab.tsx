/** The files of the session's workspace: folders to walk, and what is in a file. */

import * as keryx from "../api/client";
import type { Entry, PathContent } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Code } from "../ui/code";
import { languageOf } from "../ui/diff_parser";
import { useRequest } from "../ui/use_request";
import { LoadError } from "./load_error";
import { path as shownPath } from "./selection";

/** What every browser shows, and the server gives as it is. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const words = texts.inspector.files;

export function FilesTab({ session }: { session: SessionStore }) {
  const path = shownPath.value;
  const setPath = (next: string): void => {
    shownPath.value = next;
  };
  const changed = session.filesChanged.value;
  const { workspace } = session.head.settings.value;
  const { value, problem, again } = useRequest(
    (signal) => keryx.readPath(session.id, path, signal),
    [path, changed, workspace],
  );
  return (
    <>
      <div class="files-tab-head">
        <Crumbs path={path} onOpen={setPath} />
        {value?.kind === "file" && problem === null ? (
          <a
            class="button-quiet files-tab-download"
            href={keryx.downloadAddress(session.id, value.path)}
            download={value.path.split("/").at(-1)}
          >
            {words.download}
          </a>
        ) : null}
        <Button kind="quiet" onClick={again}>
          {words.refresh}
        </Button>
      </div>
      {problem !== null ? <LoadError problem={problem} onRetry={again} /> : null}
      {value === null || problem !== null ? null : <Look id={session.id} shown={value} path={path} onOpen={setPath} />}
    </>
  );
}

function Crumbs({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  const names = path === "." ? [] : path.split("/");
  return (
    <nav class="files-tab-crumbs" aria-label={words.path}>
      <button type="button" onClick={() => onOpen(".")} aria-current={names.length === 0 ? "page" : undefined}>
        {words.root}
      </button>
      {names.map((name, at) => (
        <span key={at}>
          <span aria-hidden="true">/</span>
          <button
            type="button"
            aria-current={at === names.length - 1 ? "page" : undefined}
            onClick={() => onOpen(names.slice(0, at + 1).join("/"))}
          >
            <bdi>{name}</bdi>
          </button>
        </span>
      ))}
    </nav>
  );
}

interface Looking {
  id: string;
  shown: PathContent;
  path: string;
  onOpen: (path: string) => void;
}

function Look({ id, shown, path, onOpen }: Looking) {
  if (shown.kind === "file") return <File id={id} file={shown} />;
  if (shown.entries.length === 0) return <p class="text-dim">{words.empty}</p>;
  const within = (name: string): string => (path === "." ? name : `${path}/${name}`);
  return (
    <>
      <ul class="files-tab-entries">
        {shown.entries.map((entry) => (
          <li key={entry.name}>
            <Item entry={entry} onOpen={() => onOpen(within(entry.name))} />
          </li>
        ))}
      </ul>
      {shown.truncated ? <p class="text-dim">{words.truncated}</p> : null}
    </>
  );
}

function Item({ entry, onOpen }: { entry: Entry; onOpen: () => void }) {
  const folder = entry.kind === "folder";
  const name = (
    <>
      <span class="files-tab-name" dir="auto">
        {entry.name}
        {folder ? "/" : ""}
      </span>
      <small>{entry.size === null ? "" : words.size(entry.size)}</small>
    </>
  );
  if (entry.kind === "other") return <span class="files-tab-entry">{name}</span>;
  return (
    <button type="button" class={folder ? "files-tab-entry is-folder" : "files-tab-entry"} onClick={onOpen}>
      {name}
    </button>
  );
}

function File({ id, file }: { id: string; file: PathContent & { kind: "file" } }) {
  if (PICTURES.has(file.media_type)) {
    return <img class="files-tab-picture" src={keryx.pictureAddress(id, file.path)} alt={file.path} />;
  }
  if (file.text === null) return <p class="text-dim">{words.binary(file.media_type, file.size)}</p>;
  const title = file.path.split("/").at(-1) ?? file.path;
  return (
    <>
      <Code text={file.text} language={languageOf(file.path)} title={title} />
      <p class="text-dim">{file.truncated ? words.cut(words.size(file.text.length)) : words.size(file.size)}</p>
    </>
  );
}
