/** What was used since the person's midnight; asked anew after something has ended, not by the clock. */

import { computed, effect, signal, untracked } from "@preact/signals";
import * as keryx from "../api/client";
import type { SessionSummary } from "../api/types";
import { login } from "../login/login_state";
import { sessions } from "../session_list/sessions";
import { minute } from "../ui/clock";
import { type UsageTotal, usageTotals } from "./usage_totals";

/** Whether the dialog that tells all of it is open. */
export const usageShown = signal(false);
/** Null until the server has told. */
export const today = signal<UsageTotal | null>(null);

/** The title of a session is paid for as well, a little after its turn: one question for both. */
const ASK_AFTER_MS = 1_500;

let timer: ReturnType<typeof setTimeout> | null = null;

/** When the day began where the person is, in seconds. */
export function midnight(now = Date.now()): number {
  return new Date(now).setHours(0, 0, 0, 0) / 1_000;
}

async function ask(): Promise<void> {
  timer = null;
  const answer = await keryx.usage(midnight()).catch(() => null);
  // What cannot be read now is read when the next turn ends.
  if (answer !== null) today.value = usageTotals(answer.rows).total;
}

function askSoon(): void {
  if (timer === null) timer = setTimeout(() => void ask(), ASK_AFTER_MS);
}

/** Whether something may have been used between the two. */
export function mayHaveUsed(before: SessionSummary, now: SessionSummary): boolean {
  return now.state === "idle" && now.last_seq > before.last_seq;
}

export function watchToday(): void {
  const others = sessions.onChange;
  sessions.onChange = (before, now) => {
    others(before, now);
    if (mayHaveUsed(before, now)) askSoon();
  };
  const day = computed(() => midnight(minute.value));
  effect(() => {
    day.value;
    if (login.value === "done") untracked(() => void ask());
  });
}
