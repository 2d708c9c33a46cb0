/** The tags of one session or of several: those there are, and new ones. */

import { useEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import { stopSelecting } from "../session_list/selection";
import { sessions } from "../session_list/sessions";
import { changedTags, tagKey } from "../session_list/tag_folders";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refusal } from "../ui/refusal";

const MOST_TAGS = 20;
const LONGEST_TAG = 40;

export function TagsDialog({ ids, onClose }: { ids: readonly string[]; onClose: () => void }) {
  const words = texts.tags;
  const tagsOf = (id: string): readonly string[] => sessions.summary(id)?.value.tags ?? [];
  const [names, setNames] = useState<readonly string[]>(() => distinct(ids.flatMap(tagsOf)));
  /** What the person decided about a tag; the others stay as they are. */
  const [decided, setDecided] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => {
    keryx.tags().then(
      ({ tags }) => setNames((before) => distinct([...before, ...tags.map(({ name }) => name)])),
      (error: unknown) => setProblem(asProblem(error)),
    );
  }, []);
  const share = (name: string): number => {
    const choice = decided.get(name);
    if (choice !== undefined) return choice ? 1 : 0;
    return ids.filter((id) => tagsOf(id).some((tag) => tagKey(tag) === tagKey(name))).length / ids.length;
  };
  const decide = (name: string, on: boolean): void => setDecided(new Map(decided).set(name, on));
  const add = (text: string): void => {
    const name = names.find((tag) => tagKey(tag) === tagKey(text)) ?? text;
    setNames(distinct([...names, name]));
    decide(name, true);
  };
  const save = async (): Promise<void> => {
    setBusy(true);
    const [added, removed] = [true, false].map((on) => new Set(names.filter((name) => decided.get(name) === on)));
    try {
      for (const id of decided.size === 0 ? [] : ids) {
        await keryx.changeSession(id, { tags: changedTags(tagsOf(id), added!, removed!) });
      }
      stopSelecting();
      onClose();
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const tooMany = names.filter((name) => share(name) === 1).length > MOST_TAGS;
  return (
    <Dialog title={words.title} onClose={onClose}>
      <h2>{words.title}</h2>
      <p class="text-dim">{words.lead}</p>
      <NewTag onAdd={add} />
      {names.length === 0 ? <p role="status">{words.none}</p> : null}
      <ul class="session-dialogs-list" aria-label={words.list}>
        {names.map((name) => (
          <li key={tagKey(name)}>
            <label class="fields-check">
              <input
                type="checkbox"
                checked={share(name) === 1}
                ref={(box) => {
                  if (box !== null) box.indeterminate = share(name) > 0 && share(name) < 1;
                }}
                onChange={(event) => decide(name, event.currentTarget.checked)}
              />
              <span dir="auto">{name}</span>
            </label>
          </li>
        ))}
      </ul>
      {tooMany ? <p class="text-error">{words.tooMany(MOST_TAGS)}</p> : null}
      {problem === null ? null : <Refusal problem={problem} />}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button kind="main" busy={busy} disabled={tooMany} onClick={() => void save()}>
          {texts.save}
        </Button>
      </div>
    </Dialog>
  );
}

function NewTag({ onAdd }: { onAdd: (name: string) => void }) {
  const [text, setText] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const name = text.trim().replace(/\s+/g, " ");
  return (
    <form
      class="session-dialogs-line"
      onSubmit={(event) => {
        event.preventDefault();
        if (name === "") return;
        onAdd(name);
        setText("");
        field.current?.focus();
      }}
    >
      <input
        ref={field}
        dir="auto"
        aria-label={texts.tags.label}
        placeholder={texts.tags.label}
        maxLength={LONGEST_TAG}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit" disabled={name === ""}>
        {texts.tags.add}
      </Button>
    </form>
  );
}

/** Each tag once, in the order of the alphabet. */
function distinct(names: readonly string[]): readonly string[] {
  const byKey = new Map<string, string>();
  for (const name of names) if (!byKey.has(tagKey(name))) byKey.set(tagKey(name), name);
  return [...byKey.values()].sort((a, b) => a.localeCompare(b));
}
