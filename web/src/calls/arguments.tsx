/** The arguments of a call as what they are: a script, a command, an edit, or an object. */

import { Code } from "../ui/code";
import { Diff } from "../ui/diff";
import { languageOf, parseDiff } from "../ui/diff_parser";
import { parseObject } from "./arguments_preview";

export function Arguments({ text, growing }: { text: string; growing: boolean }) {
  const read = growing ? null : parseObject(text);
  if (read === null) return <Code text={text} language="json" growing={growing} />;
  const shown = specially(read);
  if (shown === null && isPlain(read)) return <Rest entries={Object.entries(read)} />;
  if (shown === null) return <Code text={JSON.stringify(read, null, 2)} language="json" />;
  const [view, ...names] = shown;
  const rest = Object.entries(read).filter(([name]) => !names.includes(name));
  return (
    <>
      {view}
      {rest.length > 0 ? <Rest entries={rest} /> : null}
    </>
  );
}

/** How it is shown, and the names of the arguments that are in it. */
function specially(read: Record<string, unknown>): [preact.ComponentChild, ...string[]] | null {
  const { code, command, patch, content, path } = read;
  if (typeof code === "string") return [<Code text={code} language="python" />, "code"];
  if (typeof command === "string") return [<Code text={command} language="bash" />, "command"];
  if (typeof patch === "string") {
    const files = parseDiff(patch);
    return [files.length > 0 ? <Diff files={files} /> : <Code text={patch} language="diff" />, "patch"];
  }
  if (typeof content === "string" && typeof path === "string") {
    return [<Code text={content} language={languageOf(path)} title={path} />, "content", "path"];
  }
  return null;
}

/** Few short values need no syntax around them. */
function isPlain(read: Record<string, unknown>): boolean {
  const values = Object.values(read);
  const short = (value: unknown): boolean =>
    typeof value === "string" ? value.length < 200 && !value.includes("\n") : typeof value !== "object";
  return values.length > 0 && values.every(short);
}

function Rest({ entries }: { entries: readonly [string, unknown][] }) {
  return (
    <dl class="arguments-rest">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd dir="auto">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  );
}
