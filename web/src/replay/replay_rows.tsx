/** The rows of a moment: what was said, replied and called by then. There is nothing to press but to unfold. */

import { argumentsPreview } from "../calls/arguments_preview";
import { CallBody } from "../calls/call_body";
import type { Call, Row } from "../session/rows";
import type { SessionState } from "../session/session_state";
import { texts } from "../texts";
import { seconds } from "../texts/amounts";
import { replay as words } from "../texts/replay";
import { Disclosure } from "../ui/disclosure";
import { disclosureOf } from "../ui/disclosure_state";
import { Markdown } from "../ui/markdown/markdown";

export function ReplayRows({ state }: { state: SessionState }) {
  return (
    <>
      {state.order.map((key) => {
        const row = state.rows.get(key);
        return row === undefined ? null : <RowView key={key} row={row} state={state} />;
      })}
      {state.approvals.map((approval) => (
        <p key={approval.approval_id} class="replay-dialog-note">
          {words.asks(approval.what)}
        </p>
      ))}
      {state.questions.map((question) => (
        <p key={question.question_id} class="replay-dialog-note">
          {words.question(question.text)}
        </p>
      ))}
    </>
  );
}

function RowView({ row, state }: { row: Row; state: SessionState }) {
  switch (row.kind) {
    case "message":
      return (
        <article class="replay-dialog-message" aria-label={texts.transcript.you} dir="auto">
          {row.text}
        </article>
      );
    case "step":
      return (
        <article class="replay-dialog-step" aria-label={texts.transcript.reply}>
          {row.live ? <p class="text-dim">{words.thinking}</p> : null}
          {row.text ? <Markdown text={row.text} whole owner={row} /> : null}
          {row.calls.map((id) => (
            <CallLine key={id} call={state.calls.get(id)} sessionId={state.sessionId} />
          ))}
        </article>
      );
    case "call":
      return <CallLine call={state.calls.get(row.key)} sessionId={state.sessionId} />;
    case "end":
      return (
        <p class="replay-dialog-note" dir="auto">
          {row.error?.message ?? texts.transcript.ended.cancelled(row.reason)}
        </p>
      );
    case "note":
      return row.note.what === "warning" ? (
        <p class="replay-dialog-note" dir="auto">
          {row.note.text}
        </p>
      ) : null;
  }
}

function CallLine({ call, sessionId }: { call: Call | undefined; sessionId: string }) {
  const open = disclosureOf(`replay ${call?.callId}`);
  if (call === undefined) return null;
  const { outcome, duration } = call;
  const standing = outcome === null || outcome === "completed" ? words.phases[call.phase] : texts.call.outcome(outcome);
  return (
    <div class="replay-dialog-call" role="group" aria-label={call.tool}>
      <div class="replay-dialog-line">
        <Disclosure open={open}>
          <b>{call.tool}</b> <span dir="auto">{call.preview || argumentsPreview(call.tool, call.arguments)}</span>
        </Disclosure>
        <span class={`replay-dialog-state is-${outcome ?? call.phase}`}>
          {standing}
          {duration === null ? null : ` · ${seconds(duration)}`}
        </span>
      </div>
      {open.value ? <CallBody call={call} sessionId={sessionId} /> : null}
    </div>
  );
}
