/** How far consent that lasts goes: what was offered, the narrowest first, each with what it covers. */

import { useLayoutEffect, useRef } from "preact/hooks";
import type { ApprovalAsked, Offer } from "../api/events";
import { Button } from "../parts/button";
import { texts } from "../texts";
import { rulesShown } from "./rules";

export type Lasting = "session" | "always";

/** Within one session there is no other folder, so that would be no choice. */
export function choices(asked: ApprovalAsked, lasting: Lasting): readonly Offer[] {
  const offers = asked.offers ?? [];
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

export function Reaches({ lasting, title, offers, busy, onChoose, onBack }: Props) {
  const group = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => group.current?.querySelector("button")?.focus(), []);
  return (
    <div
      ref={group}
      class="reaches"
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
      {offers.map((offer) => (
        <button
          key={offer.reach}
          type="button"
          class="reach"
          aria-disabled={busy || undefined}
          onClick={busy ? undefined : () => onChoose(offer)}
        >
          <span>{texts.approvals.reach[offer.reach]}</span>
          <small>{lasting === "always" ? offer.says : texts.approvals.inThisSession(offer.says, offer.workspace ?? null)}</small>
        </button>
      ))}
      <div class="btns">
        {lasting === "always" ? (
          <Button kind="quiet" onClick={() => (rulesShown.value = true)}>
            {texts.rules.title}
          </Button>
        ) : null}
        <span class="grow" />
        <Button keys="Esc" onClick={onBack}>
          {texts.approvals.back}
        </Button>
      </div>
    </div>
  );
}
