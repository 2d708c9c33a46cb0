/** What is inside a call: arguments, output while it runs, result when it has ended. */

import type { Part } from "../api/events";
import type { Call, Nested } from "../state/rows";
import { texts } from "../texts";
import { AttachmentView } from "./attachment";
import { Code } from "./code";

/** Longer results are shown by their beginning and end; the whole stays in the log. */
const MOST_SHOWN = 40_000;
const MOST_NESTED = 6;

export function CallBody({ call, sessionId }: { call: Call; sessionId: string }) {
  return (
    <div class="callbody">
      <Labelled label={texts.call.arguments}>
        <Arguments text={call.arguments} growing={call.phase === "writing"} />
      </Labelled>
      {call.phase === "finished" ? (
        <Labelled label={texts.call.result}>
          <Result parts={call.result} sessionId={sessionId} />
        </Labelled>
      ) : call.output ? (
        <Labelled label={texts.call.output}>
          <pre class="output" tabIndex={0} aria-label={texts.call.output}>
            {call.output}
          </pre>
        </Labelled>
      ) : null}
    </div>
  );
}

function Labelled({ label, children }: { label: string; children: preact.ComponentChildren }) {
  return (
    <div role="group" aria-label={label}>
      <div class="label" aria-hidden="true">
        {label}
      </div>
      {children}
    </div>
  );
}

/** Scripts and commands are shown as such; everything else as the object that it is. */
function Arguments({ text, growing }: { text: string; growing: boolean }) {
  const read = growing ? null : object(text);
  if (read === null) return <Code text={text} language="json" growing={growing} />;
  const code = read["code"];
  if (typeof code === "string" && Object.keys(read).length === 1) return <Code text={code} language="python" />;
  const command = read["command"];
  if (typeof command === "string" && Object.keys(read).length === 1) return <Code text={command} language="bash" />;
  return <Code text={JSON.stringify(read, null, 2)} language="json" />;
}

function object(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

function Result({ parts, sessionId }: { parts: readonly Part[]; sessionId: string }) {
  if (parts.length === 0) return <p class="dim">{texts.call.noResult}</p>;
  return (
    <>
      {parts.map((part, index) => {
        if (part.type === "text") {
          return (
            <pre key={index} class="output" tabIndex={0} aria-label={texts.call.result}>
              {shortened(part.text) || texts.call.noResult}
            </pre>
          );
        }
        if (part.type === "json") {
          return <Code key={index} text={shortened(JSON.stringify(part.value, null, 2))} language="json" />;
        }
        return <AttachmentView key={index} sessionId={sessionId} file={part} />;
      })}
    </>
  );
}

function shortened(text: string): string {
  if (text.length <= MOST_SHOWN) return text;
  const half = MOST_SHOWN / 2;
  return `${text.slice(0, half)}\n…\n${text.slice(-half)}`;
}

/** The calls that a script makes: those under way one by one, what is over in sums. */
export function NestedView({ nested }: { nested: Nested }) {
  const running = nested.running?.slice(0, MOST_NESTED) ?? [];
  const under = nested.began - nested.ended;
  return (
    <ul class="nested">
      {nested.sums.map(({ tool, outcome, count }) => (
        <li key={`${tool} ${outcome}`} class={outcome}>
          <span class="dot" aria-hidden="true" />
          {texts.call.nestedSum(tool, outcome, count)}
        </li>
      ))}
      {running.map((each) => (
        <li key={each.callId}>
          <span class="dot run" aria-hidden="true" />
          {each.tool} <code>{each.preview}</code>
        </li>
      ))}
      {under > running.length ? <li class="dim">{texts.call.nestedMore(under - running.length)}</li> : null}
    </ul>
  );
}
