/** Tells what happens to those who do not see it: replies by paragraphs, questions, the end. */

import { effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { Opened } from "../state/opened";
import { lastSummary, type Summary } from "../state/summaries";
import { texts } from "../texts";

const MOST_LINES = 4;

export function Announcer({ opened }: { opened: Opened }) {
  const lines = useMemo(() => signal<readonly string[]>([]), [opened]);
  useEffect(() => follow(opened, (line) => (lines.value = [...lines.value, line].slice(-MOST_LINES))), [opened]);
  return (
    <div class="unseen" role="log" aria-live="polite" aria-label={texts.transcript.reply}>
      {lines.value.map((line, index) => (
        <p key={index}>{line}</p>
      ))}
    </div>
  );
}

function follow(opened: Opened, say: (line: string) => void): () => void {
  let step = "";
  let told = 0;
  const stopReading = effect(() => {
    const key = opened.order.value.at(-1);
    const row = key === undefined ? undefined : opened.row(key).value;
    if (row?.kind !== "step") return;
    if (row.key !== step) {
      step = row.key;
      told = row.live ? 0 : row.text.length;
    }
    const end = row.live ? row.text.lastIndexOf("\n\n") : row.text.length;
    if (end <= told) return;
    const line = row.text.slice(told, end).trim();
    told = end;
    if (line) queueMicrotask(() => say(line));
  });
  let asked = opened.head.approvals.peek().length + opened.head.questions.peek().length;
  const stopAsking = effect(() => {
    const now = opened.head.approvals.value.length + opened.head.questions.value.length;
    if (now > asked) queueMicrotask(() => say(texts.transcript.announced.waiting));
    asked = now;
  });
  let running = opened.head.turn.peek() !== null;
  const stopEnding = effect(() => {
    const now = opened.head.turn.value !== null;
    if (running && !now) queueMicrotask(() => say(texts.transcript.announced.done));
    running = now;
  });
  const stopSumming = followSumming(opened, say);
  return () => {
    stopSumming();
    stopReading();
    stopAsking();
    stopEnding();
  };
}

/** That it began, once even if the connection is lost meanwhile, and what came of it. */
function followSumming(opened: Opened, say: (line: string) => void): () => void {
  const newest = (): Summary | null => lastSummary(opened.order.peek().flatMap((key) => opened.peek(key) ?? []));
  let told = 0;
  let known: string | null = null;
  return effect(() => {
    const now = opened.head.compacting.value;
    if (now !== null && now.at !== told) {
      told = now.at;
      known = newest()?.key ?? null;
      queueMicrotask(() => say(texts.compaction.running(now.before)));
    } else if (now === null && told !== 0) {
      const summary = newest();
      if (summary === null || summary.key === known) return;
      known = summary.key;
      queueMicrotask(() => say(texts.compaction.done(summary.before, summary.after)));
    }
  });
}
