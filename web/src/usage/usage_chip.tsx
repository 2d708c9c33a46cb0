/** What was used, at a glance: of the session in its header, of the day below the list. */

import type { ContextSize } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { money } from "../texts/amounts";
import { today, usageShown } from "./usage_today";
import { isNothing } from "./usage_totals";

/** In the header: it moves with every step. */
export function UsageChip({ session }: { session: SessionStore }) {
  const context = session.head.context.value;
  const usage = session.head.usage.value;
  const cost = session.head.cost.value;
  const used = context?.last_prompt_tokens ?? null;
  if (used === null && isNothing(usage)) return null;
  const size = used === null ? "" : texts.settings.contextUsed(used, context?.window ?? null);
  // A cost that nobody knows is told where there is room for it; here it would only be in the way.
  const spent = isNothing(usage) ? "" : cost === null ? texts.usage.costUnknown : cost > 0 ? money(cost) : "";
  return (
    <button
      type="button"
      class="chip usage-chip"
      aria-label={texts.usage.chip(size, spent)}
      title={texts.usage.chip(size, spent)}
      onClick={() => {
        usageShown.value = true;
      }}
    >
      {used === null ? null : <ContextMeter context={context!} used={used} />}
      {size ? <span>{size}</span> : null}
      {spent && cost !== null ? <span class="usage-chip-cost">{spent}</span> : null}
    </button>
  );
}

/** With a mark where what was said so far is summed up. */
export function ContextMeter({ context, used }: { context: ContextSize; used: number }) {
  if (context.window === null) return null;
  return (
    <span class="usage-chip-gauge">
      <meter aria-label={texts.settings.contextLabel} min={0} max={context.window} value={used} />
      <CompactMark context={context} />
    </span>
  );
}

/** Who does not see it is told beside it, in words. */
export function CompactMark({ context: { window, compact_at: at } }: { context: ContextSize }) {
  if (window === null || at === null || at > window) return null;
  return <span class="usage-chip-mark" aria-hidden="true" style={{ left: `${(at / window) * 100}%` }} />;
}

/** Below the list of sessions. */
export function UsageButton() {
  const sum = today.value;
  const amount =
    sum === null || isNothing(sum) ? "" : texts.usage.usedToday(sum.input_tokens + sum.output_tokens, sum.cost);
  return (
    <button
      type="button"
      class="button-quiet usage-chip-button"
      onClick={() => {
        usageShown.value = true;
      }}
    >
      <span>{texts.usage.title}</span>
      {amount ? <small>{amount}</small> : null}
    </button>
  );
}
