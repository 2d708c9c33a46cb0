/** One memory: its text, where it is from, how far it is trusted, and what can be done about it. */

import { useLayoutEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { RememberedItem } from "../api/types";
import { listShown } from "../navigation/panels";
import { addressOf } from "../navigation/route";
import { texts } from "../texts";
import { shortTime } from "../texts/amounts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import type { Memories } from "./memories";
import { memoryShown } from "./memory_shown";

const words = texts.memory;

interface Props {
  item: RememberedItem;
  onChange: Memories["change"];
  /** It is not in the list any more: the focus needs another place. Some providers may still have it. */
  onGone: (providers: readonly string[]) => void;
}

export function MemoryItem({ item, onChange, onGone }: Props) {
  const [editing, setEditing] = useState(false);
  const [forgetting, setForgetting] = useState(false);
  const [busy, setBusy] = useState(false);
  const change = async (work: () => Promise<unknown>): Promise<boolean> => {
    setBusy(true);
    const done = await onChange(work);
    setBusy(false);
    return done;
  };
  const save = async (text: string): Promise<void> => {
    const isSame = text === item.text;
    // What could not be saved stays in its field.
    if (!isSame && !(await change(() => keryx.editMemory(item.id, text)))) return;
    setEditing(false);
    if (!isSame) onGone([]);
  };
  const forget = async (): Promise<void> => {
    setForgetting(false);
    let providers: readonly string[] = [];
    const isDone = await change(async () => {
      providers = Object.keys((await keryx.forgetMemory(item.id)).remaining);
    });
    if (isDone) onGone(providers);
  };
  if (editing) return <EditField text={item.text} busy={busy} onSave={save} onCancel={() => setEditing(false)} />;
  return (
    <li class="memory-item">
      <p class="memory-item-text" dir="auto">
        {item.text}
      </p>
      <small>
        <Origin item={item} /> · {shortTime(item.created_at)}
        {item.workspace === "" ? null : ` · ${words.work(item.workspace)}`}
        {item.person === null ? null : ` · ${words.whose(item.person)}`}
      </small>
      <small class={item.trust === "page" ? "memory-item-warning" : ""}>{words.trust[item.trust]}</small>
      {item.conflicts_with === null ? null : <small class="memory-item-warning">{words.conflict}</small>}
      <span class="memory-item-buttons">
        {item.trust === "page" ? (
          <Button
            label={words.confirmItem(item.text)}
            busy={busy}
            onClick={() => void change(() => keryx.confirmMemory(item.id))}
          >
            {words.confirm}
          </Button>
        ) : null}
        <Button kind="quiet" label={words.editItem(item.text)} busy={busy} onClick={() => setEditing(true)}>
          {words.edit}
        </Button>
        <Button kind="quiet" label={words.forgetItem(item.text)} busy={busy} onClick={() => setForgetting(true)}>
          {words.forget}
        </Button>
      </span>
      {forgetting ? <Sure item={item} onYes={() => void forget()} onNo={() => setForgetting(false)} /> : null}
    </li>
  );
}

function Origin({ item }: { item: RememberedItem }) {
  const source = item.sources[0];
  if (source === undefined) return <>{words.byYou}</>;
  if (source.title === null) return <>{words.deletedSession}</>;
  const leave = (): void => {
    memoryShown.value = false;
    listShown.value = false;
  };
  return (
    <>
      {words.from}{" "}
      <a href={addressOf(source.session_id, source.seq)} onClick={leave}>
        <bdi>{source.title || texts.list.untitled}</bdi>
      </a>
    </>
  );
}

interface EditProps {
  text: string;
  busy: boolean;
  onSave: (text: string) => Promise<void>;
  onCancel: () => void;
}

function EditField({ text, busy, onSave, onCancel }: EditProps) {
  const [draft, setDraft] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  return (
    <li class="memory-item">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (draft.trim() !== "" && !busy) void onSave(draft.trim());
        }}
      >
        <textarea
          dir="auto"
          aria-label={words.text}
          maxLength={2_000}
          rows={3}
          value={draft}
          ref={field}
          onInput={(event) => setDraft(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            // The dialog stays: only the edit is given up.
            event.preventDefault();
            onCancel();
          }}
        />
        <span class="memory-item-buttons">
          <Button type="submit" kind="main" busy={busy}>
            {texts.save}
          </Button>
          <Button onClick={onCancel}>{texts.cancel}</Button>
        </span>
      </form>
    </li>
  );
}

function Sure({ item, onYes, onNo }: { item: RememberedItem; onYes: () => void; onNo: () => void }) {
  return (
    <Dialog title={words.forgetTitle} onClose={onNo}>
      <h2>{words.forgetTitle}</h2>
      <p class="memory-item-text" dir="auto">
        {item.text}
      </p>
      <p class="text-dim">{words.forgetBody}</p>
      <div class="layout-buttons">
        <Button onClick={onNo}>{texts.cancel}</Button>
        <Button kind="stop" onClick={onYes}>
          {words.forget}
        </Button>
      </div>
    </Dialog>
  );
}
