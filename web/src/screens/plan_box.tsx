/** Above where one types: the newest plan of the session, with what is done and what is being done. */

import { signal } from "@preact/signals";
import type { PlanItem } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Disclosure } from "../ui/disclosure";

/** Where there is room, the plan of a running turn is unfolded until a person folds it. */
const ROOMY = "(min-width: 761px) and (min-height: 640px)";
const unfolded = signal(matchMedia(ROOMY).matches);

export function PlanBox({ session }: { session: SessionStore }) {
  const plan = session.head.plan.value;
  if (plan === null || plan.items.length === 0) return null;
  const { items } = plan;
  const done = items.filter(({ status }) => status === "done").length;
  const current = items.find(({ status }) => status === "doing");
  return (
    <section class="plan-box" aria-label={texts.plan.label}>
      <Disclosure open={unfolded}>
        <b>{texts.plan.label}</b>
        <span class="plan-box-count">{texts.plan.count(done, items.length)}</span>
        <span class="plan-box-current" dir="auto">
          {current?.text ?? ""}
        </span>
      </Disclosure>
      {unfolded.value ? (
        <ol tabIndex={0} aria-label={texts.plan.steps}>
          {items.map((item, index) => (
            <Item key={index} item={item} />
          ))}
        </ol>
      ) : null}
    </section>
  );
}

function Item({ item: { text, status = "open" } }: { item: PlanItem }) {
  return (
    <li class={`plan-box-item is-${status}`}>
      <span class="text-hidden">{texts.plan.status[status]}: </span>
      <span dir="auto">{text}</span>
    </li>
  );
}
