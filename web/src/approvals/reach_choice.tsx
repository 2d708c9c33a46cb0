/** How far consent that lasts goes: what was offered, the narrowest first, each with what it covers. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { ApprovalAsked, Offer } from "../api/types";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { rulesShown } from "./rules_shown";

export type Lasting = "session" | "always";

/** Within one session there is no other folder, so that would be no choice. */
export function choices(approval: ApprovalAsked, lasting: Lasting): readonly Offer[] {
  const offers = approval.offers ?? [];
  if (lasting === "always") return offers;
  return offers.filter(({ reach }, at) => at === 0 || reach !== "everywhere");
}

interface Props {
  lasting: Lasting;
  title: string;
  offers: readonly Offer[];
  busy: boolean;
  onChoose: (offer: Offer) => void;
  onBack: () => void;
}

export function ReachChoice({ lasting, title, offers, busy, onChoose, onBack }: Props) {
  const group = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => group.current?.querySelector("button")?.focus(), []);
  return (
    <div
      ref={group}
      class="reach-choice"
      role="group"
      aria-label={title}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        event.preventDefault();
        event.stopPropagation();
        onBack();
      }}
    >
      <b>{title}</b>
      {offers.map((offer, at) => (
        <button
          key={offer.reach}
          type="button"
          aria-keyshortcuts={String(at + 1)}
          class="reach-choice-option"
          aria-disabled={busy || undefined}
          onClick={busy ? undefined : () => onChoose(offer)}
        >
          <span>
            <kbd aria-hidden="true">{at + 1}</kbd> {texts.approvals.reach[offer.reach]}
          </span>
          <small dir="auto">
            {lasting === "always" ? offer.says : texts.approvals.inThisSession(offer.says, offer.workspace ?? null)}
          </small>
        </button>
      ))}
      <div class="layout-buttons">
        {lasting === "always" ? (
          <Button kind="quiet" onClick={() => (rulesShown.value = true)}>
            {texts.rules.title}
          </Button>
        ) : null}
        <span class="layout-grow" />
        <Button keys="Esc" onClick={onBack}>
          {texts.approvals.back}
        </Button>
      </div>
    </div>
  );
}
