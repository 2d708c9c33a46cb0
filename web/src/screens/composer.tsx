/** Where one types: text and files, and what is done with them while a turn runs or not. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Mode } from "../api/events";
import { Button } from "../parts/button";
import type { Attached } from "../state/attachments";
import type { Composing } from "../state/composing";
import { texts } from "../texts";

interface Props {
  composing: Composing;
  running: boolean;
  stopping: boolean;
  onStop: () => void;
}

export function Composer({ composing, running, stopping, onStop }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const send = (mode: Mode): void => void composing.send(mode);
  return (
    <form
      class={over ? "box over" : "box"}
      aria-label={texts.composer.label}
      onSubmit={(event) => {
        event.preventDefault();
        send("queue");
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        composing.attachments.add(event.dataTransfer?.files ?? []);
      }}
    >
      <Files composing={composing} />
      <Field composing={composing} running={running} onSend={send} onStop={onStop} />
      <Failure composing={composing} />
      <div class="actions">
        <Button onClick={() => picker.current?.click()}>
          <span aria-hidden="true">+</span> {texts.composer.attach}
        </Button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            composing.attachments.add(event.currentTarget.files ?? []);
            event.currentTarget.value = "";
          }}
        />
        <span class="grow" />
        {running ? (
          <>
            <Button keys="↵" disabled={!composing.ready.value} type="submit">
              {texts.composer.queue}
            </Button>
            <Button keys="Ctrl ↵" disabled={!composing.ready.value} onClick={() => send("steer")}>
              {texts.composer.steer}
            </Button>
            <Button kind="stop" keys="Esc" disabled={stopping} onClick={onStop}>
              <span aria-hidden="true">■</span> {texts.composer.stop}
            </Button>
          </>
        ) : (
          <Button kind="main" keys="↵" disabled={!composing.ready.value} type="submit">
            {texts.composer.send}
          </Button>
        )}
      </div>
    </form>
  );
}

interface FieldProps {
  composing: Composing;
  running: boolean;
  onSend: (mode: Mode) => void;
  onStop: () => void;
}

function Field({ composing, running, onSend, onStop }: FieldProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  const text = composing.text.value;
  useEffect(() => {
    const area = field.current!;
    area.style.height = "auto";
    area.style.height = `${area.scrollHeight}px`;
  }, [text]);
  useEffect(() => {
    // A keyboard that slides in by itself would hide what was opened.
    if (matchMedia("(hover: hover)").matches) field.current?.focus();
  }, [composing]);
  return (
    <textarea
      id="message"
      ref={field}
      rows={1}
      aria-label={texts.composer.label}
      placeholder={running ? texts.composer.busy : texts.composer.idle}
      value={text}
      onInput={(event) => composing.type(event.currentTarget.value)}
      onPaste={(event) => {
        const files = [...(event.clipboardData?.files ?? [])];
        if (files.length === 0) return;
        event.preventDefault();
        composing.attachments.add(files);
      }}
      onKeyDown={(event) => {
        if (event.isComposing) return;
        if (event.key === "Enter" && !event.shiftKey) {
          event.preventDefault();
          onSend(running && (event.ctrlKey || event.metaKey) ? "steer" : "queue");
        } else if (event.key === "Escape" && running) {
          event.preventDefault();
          onStop();
        }
      }}
    />
  );
}

function Failure({ composing }: { composing: Composing }) {
  const problem = composing.problem.value;
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <p class="failure" role="alert">
      {texts.composer.failed} {texts.problem(message, problem.hint)}
    </p>
  );
}

function Files({ composing }: { composing: Composing }) {
  const list = composing.attachments.list.value;
  if (list.length === 0) return null;
  return (
    <ul class="attached" aria-label={texts.composer.files}>
      {list.map((each) => (
        <li key={each.key} class={each.problem === null ? "" : "bad"}>
          {each.preview === null ? null : <img src={each.preview} alt="" />}
          <span class="name">{each.name}</span>
          <small>{fileState(each)}</small>
          <button
            type="button"
            class="x"
            aria-label={texts.composer.remove(each.name)}
            onClick={() => composing.attachments.remove(each.key)}
          >
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function fileState(each: Attached): string {
  if (each.problem !== null) return each.problem.message || texts.unreachable;
  if (each.uploadId === null) return texts.composer.uploading;
  return each.size === null ? "" : texts.composer.size(each.size);
}
