/** Tells what happens to those who do not see it: replies by paragraphs, questions, the end. */

import { effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { SessionStore } from "../session/session_store";
import { type CompactionSummary, lastSummary } from "../session/summaries";
import { texts } from "../texts";

const MOST_LINES = 4;

export function Announcer({ session }: { session: SessionStore }) {
  const lines = useMemo(() => signal<readonly string[]>([]), [session]);
  useEffect(() => follow(session, (line) => (lines.value = [...lines.value, line].slice(-MOST_LINES))), [session]);
  return (
    <div class="text-hidden" role="log" aria-live="polite" aria-label={texts.transcript.reply}>
      {lines.value.map((line, index) => (
        <p key={index}>{line}</p>
      ))}
    </div>
  );
}

function follow(session: SessionStore, say: (line: string) => void): () => void {
  let step = "";
  let announced = 0;
  const stopReading = effect(() => {
    const key = session.order.value.at(-1);
    const row = key === undefined ? undefined : session.row(key).value;
    if (row?.kind !== "step") return;
    if (row.key !== step) {
      step = row.key;
      announced = row.live ? 0 : row.text.length;
    }
    const end = row.live ? row.text.lastIndexOf("\n\n") : row.text.length;
    if (end <= announced) return;
    const line = row.text.slice(announced, end).trim();
    announced = end;
    if (line) queueMicrotask(() => say(line));
  });
  let waiting = session.head.approvals.peek().length + session.head.questions.peek().length;
  const stopAsking = effect(() => {
    const now = session.head.approvals.value.length + session.head.questions.value.length;
    if (now > waiting) queueMicrotask(() => say(texts.transcript.announced.waiting));
    waiting = now;
  });
  let running = session.head.turn.peek() !== null;
  const stopEnding = effect(() => {
    const now = session.head.turn.value !== null;
    if (running && !now) queueMicrotask(() => say(texts.transcript.announced.done));
    running = now;
  });
  const stopSumming = followSumming(session, say);
  return () => {
    stopSumming();
    stopReading();
    stopAsking();
    stopEnding();
  };
}

/** That it began, once even if the connection is lost meanwhile, and what came of it. */
function followSumming(session: SessionStore, say: (line: string) => void): () => void {
  const newest = (): CompactionSummary | null =>
    lastSummary(session.order.peek().flatMap((key) => session.peek(key) ?? []));
  let announced = 0;
  let turnId: string | null = null;
  return effect(() => {
    const now = session.head.compacting.value;
    if (now !== null && now.at !== announced) {
      announced = now.at;
      turnId = newest()?.key ?? null;
      queueMicrotask(() => say(texts.compaction.running(now.before)));
    } else if (now === null && announced !== 0) {
      const summary = newest();
      if (summary === null || summary.key === turnId) return;
      turnId = summary.key;
      queueMicrotask(() => say(texts.compaction.done(summary.before, summary.after)));
    }
  });
}
