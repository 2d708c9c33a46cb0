/** Search over everything that was said, answered and called; and the commands whose names match. */

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
import { matchingCommands, type PaletteCommand } from "./matching_commands";

const ASK_AFTER_MS = 180;

interface Props {
  commands: readonly PaletteCommand[];
  onClose: () => void;
}

export function SearchDialog({ commands, onClose }: Props) {
  const [words, setWords] = useState("");
  const { hits, problem } = useHits(words.trim());
  const matching = matchingCommands(commands, words);
  const carryOut = (command: PaletteCommand): void => {
    listShown.value = false;
    onClose();
    command.run();
  };
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
          dir="auto"
          aria-label={texts.search.label}
          placeholder={texts.search.placeholder}
          value={words}
          onInput={(event) => setWords(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter") {
              // The key is not the box's, which has the focus next.
              event.preventDefault();
              const [command] = words.trim() === "" ? [] : matching;
              if (command) carryOut(command);
              else if (hits?.[0]) open(hits[0]);
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
      {matching.length === 0 ? null : (
        <ul class="search-dialog-hits search-dialog-commands" aria-label={texts.shortcuts.commands}>
          {matching.map((command) => (
            <li key={command.name}>
              <button type="button" onClick={() => carryOut(command)} onKeyDown={step}>
                <span class="search-dialog-hit">
                  <span dir="auto">{command.name}</span>
                  {command.keys === undefined ? null : <kbd aria-hidden="true">{command.keys}</kbd>}
                </span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <p class="text-dim" role="status">
        {problem !== null
          ? problem.message || texts.unreachable
          : hits === null
            ? ""
            : hits.length === 0
              ? texts.search.none
              : texts.search.count(hits.length)}
      </p>
      <ul class="search-dialog-hits" aria-label={texts.shortcuts.results}>
        {hits?.map((hit) => (
          <li key={`${hit.session.session_id} ${hit.seq}`}>
            <button type="button" onClick={() => open(hit)} onKeyDown={step}>
              <span class="search-dialog-hit">
                <b dir="auto">{hit.session.title || texts.list.untitled}</b>
                <small>
                  {texts.search.kinds[hit.kind]} · {fullTime(hit.at)}
                </small>
              </span>
              <span class="search-dialog-snippet" dir="auto">
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

/** Up and down through the commands and the hits, as if they were one list. */
function step(event: KeyboardEvent): void {
  if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
  const here = event.currentTarget as HTMLElement;
  const all = [...(here.closest("dialog")?.querySelectorAll<HTMLElement>(".search-dialog-hits button") ?? [])];
  const next = all[all.indexOf(here) + (event.key === "ArrowDown" ? 1 : -1)];
  if (next !== undefined) {
    event.preventDefault();
    next.focus();
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
