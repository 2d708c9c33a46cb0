/** What agents remember beyond their sessions: read, searched, added, edited, confirmed, forgotten. */

import { useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { type Memories, useMemories } from "./memories";
import { MemoryItem } from "./memory_item";
import { memoryShown } from "./memory_shown";
import { ProviderStates } from "./provider_states";

const words = texts.memory;

export function MemoryDialog() {
  return memoryShown.value ? <Shown /> : null;
}

function Shown() {
  const [search, setSearch] = useState("");
  const memories = useMemories(search.trim());
  /** The providers that may still have what was forgotten last. */
  const [holders, setHolders] = useState<readonly string[]>([]);
  const title = useRef<HTMLHeadingElement>(null);
  const { status, problem } = memories;
  const onGone = (providers: readonly string[]): void => {
    setHolders(providers);
    title.current?.focus();
  };
  const close = (): void => {
    memoryShown.value = false;
  };
  return (
    <Dialog title={words.title} onClose={close} kind="memory-dialog">
      <h2 ref={title} tabIndex={-1}>
        {words.title}
      </h2>
      {problem === null ? null : (
        <p class="text-error" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      )}
      {status === null && problem === null ? <p class="text-dim">{texts.loading}</p> : null}
      {status === null ? null : status.on ? (
        <>
          <p class="text-dim">{words.lead}</p>
          <ProviderStates status={status} onChange={memories.change} />
          <AddField onChange={memories.change} />
          <input
            type="search"
            dir="auto"
            aria-label={words.search}
            placeholder={words.search}
            value={search}
            onInput={(event) => setSearch(event.currentTarget.value)}
          />
          {holders.length === 0 ? null : <p role="status">{words.remaining(holders.join(", "))}</p>}
          <Items memories={memories} searching={search.trim() !== ""} onGone={onGone} />
        </>
      ) : (
        <p>{status.hint}</p>
      )}
      <div class="layout-buttons">
        <Button onClick={close}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

function AddField({ onChange }: { onChange: Memories["change"] }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const add = async (): Promise<void> => {
    if (text.trim() === "" || busy) return;
    setBusy(true);
    if (await onChange(() => keryx.addMemory(text))) setText("");
    setBusy(false);
  };
  return (
    <form
      class="memory-dialog-line"
      onSubmit={(event) => {
        event.preventDefault();
        void add();
      }}
    >
      <input
        dir="auto"
        aria-label={words.addLabel}
        placeholder={words.addPlaceholder}
        maxLength={2_000}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <Button type="submit" busy={busy}>
        {words.add}
      </Button>
    </form>
  );
}

interface ItemsProps {
  memories: Memories;
  searching: boolean;
  onGone: (providers: readonly string[]) => void;
}

function Items({ memories, searching, onGone }: ItemsProps) {
  const { items, hasMore, more, change } = memories;
  if (items === null) return <p class="text-dim">{texts.loading}</p>;
  return (
    <>
      {items.length > 0 ? null : (
        <p class="text-dim" role="status">
          {searching ? words.noHits : words.none}
        </p>
      )}
      <ul class="memory-dialog-list" aria-label={words.list}>
        {items.map((item) => (
          <MemoryItem key={item.id} item={item} onChange={change} onGone={onGone} />
        ))}
      </ul>
      {hasMore ? (
        <Button kind="quiet" onClick={more}>
          {words.more}
        </Button>
      ) : null}
    </>
  );
}
