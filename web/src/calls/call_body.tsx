/** What is inside a call: arguments, output while it runs, result when it has ended. */

import type { ResultPart } from "../api/types";
import type { Call } from "../session/rows";
import { texts } from "../texts";
import { Code, Copy } from "../ui/code";
import { AttachmentView } from "./attachment";
import { FullArguments } from "./full_text";

/** Longer results are shown by their beginning and end; the whole stays in the log. */
const MOST_SHOWN = 40_000;

export function CallBody({ call, sessionId }: { call: Call; sessionId: string }) {
  return (
    <div class="call-body">
      <Labelled label={texts.call.arguments}>
        <FullArguments call={call} sessionId={sessionId} />
      </Labelled>
      {call.phase === "finished" ? (
        <Labelled label={texts.call.result} copy={resultText(call.result)}>
          <Result parts={call.result} sessionId={sessionId} />
        </Labelled>
      ) : call.output ? (
        <Labelled label={texts.call.output} copy={call.output}>
          <pre class="code-output" tabIndex={0} aria-label={texts.call.output}>
            {call.output}
          </pre>
        </Labelled>
      ) : null}
    </div>
  );
}

interface LabelledProps {
  label: string;
  children: preact.ComponentChildren;
  /** What the button beside the label copies; none without it. */
  copy?: string;
}

export function Labelled({ label, children, copy = "" }: LabelledProps) {
  return (
    <div role="group" aria-label={label}>
      <div class="call-body-label">
        <span aria-hidden="true">{label}</span>
        {copy ? <Copy text={copy} /> : null}
      </div>
      {children}
    </div>
  );
}

export function Result({ parts, sessionId }: { parts: readonly ResultPart[]; sessionId: string }) {
  if (parts.length === 0) return <p class="text-dim">{texts.call.noResult}</p>;
  return (
    <>
      {parts.map((part, index) => {
        if (part.type === "text") {
          return (
            <pre key={index} class="code-output" tabIndex={0} aria-label={texts.call.result}>
              {shortened(part.text) || texts.call.noResult}
            </pre>
          );
        }
        if (part.type === "json") return <Value key={index} value={part.value} />;
        return <AttachmentView key={index} sessionId={sessionId} file={part} />;
      })}
    </>
  );
}

/** What a command printed is read as such; everything else as the value that it is. */
function Value({ value }: { value: unknown }) {
  const { output, ...rest } = typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  if (typeof output !== "string") return <Code text={shortened(JSON.stringify(value, null, 2))} language="json" />;
  const more = Object.entries(rest).map(([name, field]) => texts.call.resultField(name, field));
  return (
    <>
      <pre class="code-output" tabIndex={0} aria-label={texts.call.result}>
        {shortened(output) || texts.call.noResult}
      </pre>
      {more.length > 0 ? (
        <p class="text-dim" dir="auto">
          {more.join(" · ")}
        </p>
      ) : null}
    </>
  );
}

/** What a person would want of it elsewhere: what was printed, else the value. */
export function resultText(parts: readonly ResultPart[]): string {
  const texts = parts.map((part) => {
    if (part.type === "text") return part.text;
    if (part.type !== "json") return "";
    const { output } =
      typeof part.value === "object" && part.value !== null ? (part.value as { output?: unknown }) : {};
    return typeof output === "string" ? output : JSON.stringify(part.value, null, 2);
  });
  return texts.filter(Boolean).join("\n");
}

function shortened(text: string): string {
  if (text.length <= MOST_SHOWN) return text;
  const half = MOST_SHOWN / 2;
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`;
}
