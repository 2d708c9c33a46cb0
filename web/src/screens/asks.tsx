/** What waits for a person: it docks where one types, and goes when it was answered anywhere. */

import { useRef, useState } from "preact/hooks";
import { choices, Reaches, type Lasting } from "../approvals/reach";
import type { ApprovalAsked, Decision, QuestionAsked, Reach } from "../api/events";
import * as keryx from "../api/keryx";
import { Problem } from "../api/problem";
import { Button } from "../parts/button";
import { attempt } from "../state/app";
import { second } from "../state/clock";
import type { Opened } from "../state/opened";
import { serverTime } from "../state/serverclock";
import { texts } from "../texts";

export function Asks({ opened }: { opened: Opened }) {
  const approvals = opened.head.approvals.value;
  const questions = opened.head.questions.value;
  if (approvals.length + questions.length === 0) return null;
  return (
    <section class="asks" aria-label={texts.approvals.label}>
      {approvals.map((asked) => (
        <Approval key={asked.approval_id} sessionId={opened.id} asked={asked} />
      ))}
      {questions.map((asked) => (
        <Question key={asked.question_id} sessionId={opened.id} asked={asked} />
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

function Approval({ sessionId, asked }: { sessionId: string; asked: ApprovalAsked }) {
  const [busy, setBusy] = useState(false);
  const [lasting, setLasting] = useState<Lasting | null>(null);
  const card = useRef<HTMLDivElement>(null);
  const title = texts.approvals.question(asked.tool || asked.what);
  const lastingText = (how: Lasting): string => texts.approvals.allowLasting(how, asked.tool ?? "");
  const decide = async (decision: Decision, reach: Reach | null = null): Promise<void> => {
    setBusy(true);
    await attempt(() => first(() => keryx.approve(sessionId, asked.approval_id, decision, reach)));
    setBusy(false);
  };
  // “Always” is never done at once: first one sees what it covers.
  const last = (how: Lasting): void => {
    const offers = choices(asked, how);
    if (offers.length > (how === "always" ? 0 : 1)) setLasting(how);
    else void decide(how, offers[0]?.reach ?? null);
  };
  const back = (): void => {
    setLasting(null);
    card.current?.focus();
  };
  // Consent to more than this very call must have something to be about.
  const wider = asked.patterns === undefined || asked.patterns === null || asked.patterns.length > 0;
  const button = (decision: Decision, text: string, kind: "plain" | "main" = "plain") => (
    <Button kind={kind} busy={busy} onClick={() => void decide(decision)}>
      {text}
    </Button>
  );
  return (
    <div class={`ask ${asked.risk}`} role="group" aria-label={title} ref={card} tabIndex={-1}>
      <div class="what">
        <b>{title}</b>
        {asked.tool ? <pre tabIndex={0}>{without(asked.what, asked.tool)}</pre> : null}
        <p class="dim">
          {[texts.approvals.risks[asked.risk], asked.why, ...needs(asked)].filter(Boolean).join(" · ")}
          <Expiry at={asked.expires} />
        </p>
      </div>
      {lasting !== null ? (
        <Reaches
          lasting={lasting}
          title={lastingText(lasting)}
          offers={choices(asked, lasting)}
          busy={busy}
          onChoose={({ reach }) => void decide(lasting, reach)}
          onBack={back}
        />
      ) : (
        <div class="btns">
          {button("deny", texts.approvals.deny)}
          {wider ? (
            <Button busy={busy} onClick={() => last("session")}>
              {lastingText("session")}
            </Button>
          ) : null}
          {wider ? (
            <Button busy={busy} onClick={() => last("always")}>
              {lastingText("always")}
            </Button>
          ) : null}
          {button("once", texts.approvals.allowOnce, "main")}
        </div>
      )}
    </div>
  );
}

/** The tool is named above it already. */
function without(what: string, tool: string): string {
  return what.startsWith(`${tool}: `) ? what.slice(tool.length + 2) : what;
}

function needs({ needs: told }: ApprovalAsked): string[] {
  const { network = false, reads = [], writes = [] } = told ?? {};
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

function Question({ sessionId, asked }: { sessionId: string; asked: QuestionAsked }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const reply = async (words: string): Promise<void> => {
    setBusy(true);
    await attempt(() => first(() => keryx.answer(sessionId, asked.question_id, words)));
    setBusy(false);
  };
  return (
    <form
      class="ask question"
      aria-label={asked.text}
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() && !busy) void reply(text);
      }}
    >
      <div class="what">
        <b>{asked.text}</b>
        <Expiry at={asked.expires} />
      </div>
      {asked.choices?.length ? (
        <div class="btns choices">
          {asked.choices.map((choice) => (
            <Button key={choice} busy={busy} onClick={() => void reply(choice)}>
              {choice}
            </Button>
          ))}
        </div>
      ) : null}
      <div class="answer">
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
