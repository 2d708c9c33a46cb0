/** Search over everything that was said, answered and called. */

import { useEffect, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { Hit } from "../api/types";
import { listShown } from "../navigation/panels";
import { go } from "../navigation/route";
import { texts } from "../texts";
import { fullTime } from "../texts/amounts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";

const ASK_AFTER_MS = 180;

export function SearchDialog({ onClose }: { onClose: () => void }) {
  const [words, setWords] = useState("");
  const { hits, problem } = useHits(words.trim());
  const open = (hit: Hit): void => {
    go(hit.session.session_id, hit.seq);
    listShown.value = false;
    onClose();
  };
  return (
    <Dialog title={texts.search.title} onClose={onClose} kind="search-dialog">
      <div class="search-dialog-field">
        <input
          type="search"
          aria-label={texts.search.label}
          placeholder={texts.search.placeholder}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              // The key is not the box's, which has the focus next.
              event.preventDefault();
              if (hits?.[0]) open(hits[0]);
            } else if (event.key === "ArrowDown") moveTo(event, ".search-dialog-hits button");
            else if (event.key === "Escape") {
              // Browsers take the first Escape to empty the field.
              event.preventDefault();
              onClose();
            }
          }}
        />
        <Button kind="quiet" onClick={onClose}>
          {texts.close}
        </Button>
      </div>
      <p class="text-dim" role="status">
        {problem !== null
          ? problem.message || texts.unreachable
          : hits === null
            ? ""
            : hits.length === 0
              ? texts.search.none
              : texts.search.count(hits.length)}
      </p>
      <ul class="search-dialog-hits">
        {hits?.map((hit) => (
          <li key={`${hit.session.session_id} ${hit.seq}`}>
            <button type="button" onClick={() => open(hit)} onKeyDown={step}>
              <span class="search-dialog-hit">
                <b>{hit.session.title || texts.list.untitled}</b>
                <small>
                  {texts.search.kinds[hit.kind]} · {fullTime(hit.at)}
                </small>
              </span>
              <span class="search-dialog-snippet">
                {hit.snippet.map((part, index) => (part.found ? <mark key={index}>{part.text}</mark> : part.text))}
              </span>
            </button>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function moveTo(event: KeyboardEvent, selector: string): void {
  const dialog = (event.currentTarget as Element).closest("dialog");
  const target = dialog?.querySelector<HTMLElement>(selector);
  if (!target) return;
  event.preventDefault();
  target.focus();
}

function step(event: KeyboardEvent): void {
  const item = (event.currentTarget as Element).closest("li");
  const next = event.key === "ArrowDown" ? item?.nextElementSibling : item?.previousElementSibling;
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  if (next) {
    event.preventDefault();
    next.querySelector("button")?.focus();
  } else if (event.key === "ArrowUp") moveTo(event, "input");
}

function useHits(words: string): { hits: readonly Hit[] | null; problem: Problem | null } {
  const [hits, setHits] = useState<readonly Hit[] | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    setProblem(null);
    if (words === "") return setHits(null);
    const abort = new AbortController();
    const ask = async (): Promise<void> => {
      try {
        setHits((await keryx.search(words, abort.signal)).hits);
      } catch (error) {
        if (!abort.signal.aborted) setProblem(asProblem(error));
      }
    };
    const timer = setTimeout(() => void ask(), ASK_AFTER_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [words]);
  return { hits, problem };
}
