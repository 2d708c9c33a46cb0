/** What waits for a person: it docks where one types, and goes when it was answered anywhere. */

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import * as keryx from "../api/client";
import { Problem } from "../api/problem";
import { serverTime } from "../api/server_clock";
import type { ApprovalAsked, Decision, QuestionAsked, Reach } from "../api/types";
import { tooLongProblem } from "../session/message_length";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { second } from "../ui/clock";
import { attempt } from "../ui/notice";
import { typeIntoBox, useAnswerKeys } from "./answer_keys";
import { choices, type Lasting, ReachChoice } from "./reach_choice";

/** How a call is shown whole: its command, its edit, or whatever it gets. */
export type ShowAsked = (approval: ApprovalAsked) => ComponentChildren;

interface Props {
  session: SessionStore;
  show: ShowAsked;
  /** Whether nothing is in the message box. */
  isDraftEmpty: () => boolean;
}

export function ApprovalRequests({ session, show, isDraftEmpty }: Props) {
  const approvals = session.head.approvals.value;
  const questions = session.head.questions.value;
  const section = useRef<HTMLElement>(null);
  const answered = useAnswerKeys(section, approvals[0]?.approval_id, isDraftEmpty);
  if (approvals.length + questions.length === 0) return null;
  return (
    <section
      ref={section}
      class="requests"
      aria-label={texts.approvals.label}
      onKeyDown={(event) => typeIntoBox(event.currentTarget, event)}
    >
      {approvals.map((approval) => (
        <Approval
          key={approval.approval_id}
          sessionId={session.id}
          approval={approval}
          hasKeys={approval.approval_id === answered}
          show={show}
        />
      ))}
      {questions.map((question) => (
        <Question key={question.question_id} sessionId={session.id} question={question} />
      ))}
    </section>
  );
}

/** If somebody else was faster, that is no problem: the event says so too. */
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
  /** Whether the keys 1 to 4 answer it now. */
  hasKeys: boolean;
  show: ShowAsked;
}

function Approval({ sessionId, approval, hasKeys, show }: ApprovalProps) {
  const [busy, setBusy] = useState(false);
  const [lasting, setLasting] = useState<Lasting | null>(null);
  const card = useRef<HTMLDivElement>(null);
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
  const whole = show(approval);
  const [narrowest] = approval.offers ?? [];
  return (
    <div
      class={`requests-card is-${approval.risk}${hasKeys ? " is-keyed" : ""}`}
      data-approval={approval.approval_id}
      role="group"
      aria-label={title}
      ref={card}
      tabIndex={-1}
    >
      <div class="requests-what">
        <b>{title}</b>
        {approval.arguments ? (
          <div class="requests-call" role="region" aria-label={texts.approvals.whole} tabIndex={0}>
            {whole}
          </div>
        ) : approval.tool ? (
          <pre tabIndex={0} dir="auto">
            {without(approval.what, approval.tool)}
          </pre>
        ) : null}
        <p class="text-dim" dir="auto">
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
  const [busy, setBusy] = useState(false);
  const name = textName.answer(question.question_id);
  const unsaved = unsavedTexts(sessionId);
  const text = unsaved.get(name) ?? "";
  const reply = async (answer: () => Promise<unknown>): Promise<void> => {
    setBusy(true);
    await attempt(() => first(answer));
    setBusy(false);
  };
  const answer = (words: string) => keryx.answer(sessionId, question.question_id, words);
  const submit = (): void => {
    const refused = tooLongProblem(text, texts.composer.tooLongHere);
    // What somebody else was faster with is not sent: it stays.
    void reply(() => (refused === null ? unsaved.send(name, () => answer(text)) : Promise.reject(refused)));
  };
  return (
    <form
      class="requests-card is-question"
      aria-label={question.text}
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() && !busy) submit();
      }}
    >
      <div class="requests-what">
        <b dir="auto">{question.text}</b>
        <Expiry at={question.expires} />
      </div>
      {question.choices?.length ? (
        <div class="layout-buttons requests-choices">
          {question.choices.map((choice) => (
            <Button key={choice} busy={busy} onClick={() => void reply(() => answer(choice))}>
              <bdi>{choice}</bdi>
            </Button>
          ))}
        </div>
      ) : null}
      <div class="requests-answer">
        <input
          dir="auto"
          aria-label={texts.approvals.answer}
          placeholder={texts.approvals.answer}
          value={text}
          readOnly={busy}
          onInput={(event) => {
            if (event.currentTarget.value === "") unsaved.drop(name);
            else unsaved.put(name, event.currentTarget.value);
          }}
        />
        <Button type="submit" kind="main" busy={busy} disabled={text.trim() === ""}>
          {texts.approvals.sendAnswer}
        </Button>
      </div>
    </form>
  );
}
