/** What waits for a person: it docks where one types, and goes when it was answered anywhere. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { Problem } from "../api/problem";
import { serverTime } from "../api/server_clock";
import type { ApprovalAsked, Decision, QuestionAsked, Reach } from "../api/types";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { second } from "../ui/clock";
import { attempt } from "../ui/notice";
import { choices, type Lasting, ReachChoice } from "./reach_choice";

/** How a call is shown whole: its command, its edit, or whatever it gets. */
export type ShowAsked = (approval: ApprovalAsked) => ComponentChildren;

export function ApprovalRequests({ session, show }: { session: SessionStore; show: ShowAsked }) {
  const approvals = session.head.approvals.value;
  const questions = session.head.questions.value;
  if (approvals.length + questions.length === 0) return null;
  return (
    <section class="requests" aria-label={texts.approvals.label}>
      {approvals.map((approval) => (
        <Approval
          key={approval.approval_id}
          sessionId={session.id}
          approval={approval}
          isFirst={approval === approvals[0]}
          show={show}
        />
      ))}
      {questions.map((question) => (
        <Question key={question.question_id} sessionId={session.id} question={question} />
      ))}
    </section>
  );
}

/** Somebody else was faster: that is no problem, the event says so too. */
async function first(answer: () => Promise<unknown>): Promise<void> {
  try {
    await answer();
  } catch (error) {
    if (!(error instanceof Problem && error.kind === "conflict")) throw error;
  }
}

interface ApprovalProps {
  sessionId: string;
  approval: ApprovalAsked;
  isFirst: boolean;
  show: ShowAsked;
}

function isAnswerKey(event: KeyboardEvent): boolean {
  if (event.defaultPrevented || event.ctrlKey || event.altKey || event.metaKey || !/^[1-4]$/.test(event.key))
    return false;
  return (event.target as Element).closest("input, textarea, select, dialog, [contenteditable]") === null;
}

/** The keys 1 to 4 answer this card: the one with the focus, or else the first. Not while one types. */
function useKeys(card: { readonly current: HTMLElement | null }, isFirst: boolean): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (!isAnswerKey(event)) return;
      const focused = (event.target as Element).closest(".requests-card");
      if (focused === null ? !isFirst : focused !== card.current) return;
      const button = card.current?.querySelector<HTMLButtonElement>(`button[aria-keyshortcuts="${event.key}"]`);
      if (!button) return;
      event.preventDefault();
      button.click();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [isFirst]);
}

function Approval({ sessionId, approval, isFirst, show }: ApprovalProps) {
  const [busy, setBusy] = useState(false);
  const [lasting, setLasting] = useState<Lasting | null>(null);
  const card = useRef<HTMLDivElement>(null);
  useKeys(card, isFirst);
  const title = texts.approvals.question(approval.tool || approval.what);
  const lastingText = (how: Lasting): string => texts.approvals.allowLasting(how, approval.tool ?? "");
  const decide = async (decision: Decision, reach: Reach | null = null): Promise<void> => {
    setBusy(true);
    await attempt(() => first(() => keryx.approve(sessionId, approval.approval_id, decision, reach)));
    setBusy(false);
  };
  // “Always” is never done at once: first one sees what it covers.
  const last = (how: Lasting): void => {
    const offers = choices(approval, how);
    if (offers.length > (how === "always" ? 0 : 1)) setLasting(how);
    else void decide(how, offers[0]?.reach ?? null);
  };
  const back = (): void => {
    setLasting(null);
    card.current?.focus();
  };
  // Consent to more than this very call must have something to be about.
  const wider = approval.patterns === undefined || approval.patterns === null || approval.patterns.length > 0;
  const asked = show(approval);
  const [narrowest] = approval.offers ?? [];
  return (
    <div class={`requests-card is-${approval.risk}`} role="group" aria-label={title} ref={card} tabIndex={-1}>
      <div class="requests-what">
        <b>{title}</b>
        {approval.arguments ? (
          <div class="requests-call" role="region" aria-label={texts.approvals.whole} tabIndex={0}>
            {asked}
          </div>
        ) : approval.tool ? (
          <pre tabIndex={0}>{without(approval.what, approval.tool)}</pre>
        ) : null}
        <p class="text-dim">
          {[texts.approvals.risks[approval.risk], approval.why, ...needs(approval)].filter(Boolean).join(" · ")}
          <Expiry at={approval.expires} />
        </p>
        {wider && narrowest !== undefined ? (
          <p class="text-dim">{texts.approvals.lastingCovers(narrowest.says)}</p>
        ) : null}
      </div>
      {lasting !== null ? (
        <ReachChoice
          lasting={lasting}
          title={lastingText(lasting)}
          offers={choices(approval, lasting)}
          busy={busy}
          onChoose={({ reach }) => void decide(lasting, reach)}
          onBack={back}
        />
      ) : (
        <div class="layout-buttons">
          <Button kind="main" keys="1" shortcut="1" busy={busy} onClick={() => void decide("once")}>
            {texts.approvals.allowOnce}
          </Button>
          {wider ? (
            <>
              <Button keys="2" shortcut="2" busy={busy} onClick={() => last("session")}>
                {lastingText("session")}
              </Button>
              <Button keys="3" shortcut="3" busy={busy} onClick={() => last("always")}>
                {lastingText("always")}
              </Button>
            </>
          ) : null}
          <Button keys="4" shortcut="4" busy={busy} onClick={() => void decide("deny")}>
            {texts.approvals.deny}
          </Button>
        </div>
      )}
    </div>
  );
}

/** The tool is named above it already. */
function without(what: string, tool: string): string {
  return what.startsWith(`${tool}: `) ? what.slice(tool.length + 2) : what;
}

function needs({ needs: access }: ApprovalAsked): string[] {
  const { network = false, reads = [], writes = [] } = access ?? {};
  return [
    network ? texts.approvals.network : "",
    reads.length > 0 ? texts.approvals.reads(reads.join(", ")) : "",
    writes.length > 0 ? texts.approvals.writes(writes.join(", ")) : "",
  ];
}

function Expiry({ at }: { at: number | null }) {
  if (at === null) return null;
  const left = at - serverTime(second.value);
  return left > 0 ? <span> · {texts.approvals.expires(Math.ceil(left))}</span> : null;
}

function Question({ sessionId, question }: { sessionId: string; question: QuestionAsked }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const reply = async (words: string): Promise<void> => {
    setBusy(true);
    await attempt(() => first(() => keryx.answer(sessionId, question.question_id, words)));
    setBusy(false);
  };
  return (
    <form
      class="requests-card is-question"
      aria-label={question.text}
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() && !busy) void reply(text);
      }}
    >
      <div class="requests-what">
        <b>{question.text}</b>
        <Expiry at={question.expires} />
      </div>
      {question.choices?.length ? (
        <div class="layout-buttons requests-choices">
          {question.choices.map((choice) => (
            <Button key={choice} busy={busy} onClick={() => void reply(choice)}>
              {choice}
            </Button>
          ))}
        </div>
      ) : null}
      <div class="requests-answer">
        <input
          aria-label={texts.approvals.answer}
          placeholder={texts.approvals.answer}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit" kind="main" busy={busy} disabled={text.trim() === ""}>
          {texts.approvals.sendAnswer}
        </Button>
      </div>
    </form>
  );
}
