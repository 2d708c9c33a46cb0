/** Where one types: text and files, and what is done with them while a turn runs or not. */

import { useMemo, useRef, useState } from "preact/hooks";
import { carryOut } from "../composer/carrying";
import { Field, type Sending } from "../composer/field";
import { Help } from "../composer/help";
import { read } from "../composer/reading";
import { STEER_SAYS, SteerLine } from "../composer/steering";
import { Suggest, type Choices } from "../composer/suggest";
import { Button } from "../parts/button";
import { opening, profiles, sessions } from "../state/app";
import type { Attached } from "../state/attachments";
import type { Composing } from "../state/composing";
import type { Opened } from "../state/opened";
import { texts } from "../texts";

interface Props {
  composing: Composing;
  running: boolean;
  stopping: boolean;
  onStop: () => void;
  /** The session, once there is one. */
  opened?: Opened;
}

export function Composer({ composing, running, stopping, onStop, opened }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const suggest = useMemo(() => new Suggest(), [composing]);
  const choices = (): Choices => {
    const now = opened?.head.settings.peek() ?? opening.peek();
    const { model, workspace, personality, effort, profile } = now;
    return {
      sessionId: opened?.id ?? null,
      files: opened?.id ?? sessions.within(workspace || profiles.peek().workspace),
      profile: profile ?? null,
      now: { model, workspace, personality, effort },
    } as Choices;
  };
  const said = read(composing.text.value);
  const send = (how: Sending): void => {
    const what = read(composing.text.peek());
    if (what.what !== "message") void composing.run((key) => carryOut(what, opened ?? null, key));
    else void composing.send(how === "queue" ? "queue" : "steer", how === "after");
  };
  const ready = composing.ready.value;
  // While something is completed, that is what the person looks at.
  const plain = said.what === "message" && suggest.list.value.length === 0 && !composing.text.value.startsWith("/");
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
      <Field
        composing={composing}
        suggest={suggest}
        choices={choices}
        running={running}
        onSend={send}
        onStop={onStop}
      />
      <Failure composing={composing} />
      {said.what === "terminal" || said.what === "code" ? (
        <p class="steerline">{texts.commands.runs[said.what]}</p>
      ) : running && ready && plain && opened !== undefined ? (
        <SteerLine opened={opened} onAfter={() => send("after")} />
      ) : null}
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
        {said.what !== "message" ? (
          <Button kind="main" keys="↵" disabled={composing.sending.value} type="submit">
            {texts.commands.run}
          </Button>
        ) : running ? (
          <>
            <Button keys="↵" disabled={!ready} type="submit">
              {texts.composer.queue}
            </Button>
            <Button keys="Ctrl ↵" disabled={!ready} onClick={() => send("steer")} describedBy={STEER_SAYS}>
              {texts.composer.steer}
            </Button>
          </>
        ) : (
          <Button kind="main" keys="↵" disabled={!ready} type="submit">
            {texts.composer.send}
          </Button>
        )}
        {running ? (
          <Button kind="stop" keys="Esc" disabled={stopping} onClick={onStop}>
            <span aria-hidden="true">■</span> {texts.composer.stop}
          </Button>
        ) : null}
      </div>
      <Help />
    </form>
  );
}

function Failure({ composing }: { composing: Composing }) {
  const problem = composing.problem.value;
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <p class="failure" role="alert">
      {read(composing.text.value).what === "message" ? texts.composer.failed : texts.commands.failed}{" "}
      {texts.problem(message, problem.hint)}
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
