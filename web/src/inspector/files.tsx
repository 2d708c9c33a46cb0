/** The files of the session's workspace: folders to walk, and what is in a file. */

import { useState } from "preact/hooks";
import * as keryx from "../api/keryx";
import type { Entry, Shown } from "../api/shapes";
import { Button } from "../parts/button";
import { Code } from "../parts/code";
import { languageOf } from "../parts/edits";
import type { Opened } from "../state/opened";
import { texts } from "../texts";
import { useAsked } from "./asked";
import { Trouble } from "./trouble";

/** What every browser shows, and the server gives as it is. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

const words = texts.inspector.files;

export function FilesTab({ opened }: { opened: Opened }) {
  const [path, setPath] = useState(".");
  const changed = opened.filesChanged.value;
  const { workspace } = opened.head.settings.value;
  const { value, problem, again } = useAsked((signal) => keryx.look(opened.id, path, signal), [path, changed, workspace]);
  return (
    <>
      <div class="crumbline">
        <Crumbs path={path} onOpen={setPath} />
        <Button kind="quiet" onClick={again}>
          {words.refresh}
        </Button>
      </div>
      {problem !== null ? <Trouble problem={problem} onRetry={again} /> : null}
      {value === null || problem !== null ? null : <Look id={opened.id} shown={value} path={path} onOpen={setPath} />}
    </>
  );
}

function Crumbs({ path, onOpen }: { path: string; onOpen: (path: string) => void }) {
  const names = path === "." ? [] : path.split("/");
  return (
    <nav class="crumbs" aria-label={words.path}>
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
            {name}
          </button>
        </span>
      ))}
    </nav>
  );
}

interface Looking {
  id: string;
  shown: Shown;
  path: string;
  onOpen: (path: string) => void;
}

function Look({ id, shown, path, onOpen }: Looking) {
  if (shown.kind === "file") return <File id={id} file={shown} />;
  if (shown.entries.length === 0) return <p class="dim">{words.empty}</p>;
  const within = (name: string): string => (path === "." ? name : `${path}/${name}`);
  return (
    <>
      <ul class="entries">
        {shown.entries.map((entry) => (
          <li key={entry.name}>
            <Item entry={entry} onOpen={() => onOpen(within(entry.name))} />
          </li>
        ))}
      </ul>
      {shown.truncated ? <p class="dim">{words.truncated}</p> : null}
    </>
  );
}

function Item({ entry, onOpen }: { entry: Entry; onOpen: () => void }) {
  const folder = entry.kind === "folder";
  const name = (
    <>
      <span class="name">
        {entry.name}
        {folder ? "/" : ""}
      </span>
      <small>{entry.size === null ? "" : words.size(entry.size)}</small>
    </>
  );
  if (entry.kind === "other") return <span class="entry">{name}</span>;
  return (
    <button type="button" class={folder ? "entry folder" : "entry"} onClick={onOpen}>
      {name}
    </button>
  );
}

function File({ id, file }: { id: string; file: Shown & { kind: "file" } }) {
  if (PICTURES.has(file.media_type)) {
    return <img class="picture" src={keryx.pictureAddress(id, file.path)} alt={file.path} />;
  }
  if (file.text === null) return <p class="dim">{words.binary(file.media_type, file.size)}</p>;
  const title = file.path.split("/").at(-1) ?? file.path;
  return (
    <>
      <Code text={file.text} language={languageOf(file.path)} title={title} />
      <p class="dim">{file.truncated ? words.cut(words.size(file.text.length)) : words.size(file.size)}</p>
    </>
  );
}
