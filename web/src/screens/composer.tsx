/** Where one types: text and files, and what is done with them while a turn runs or not. */

import { useMemo, useRef, useState } from "preact/hooks";
import { carryOut, whenOpened } from "../composer/carrying";
import { Field, type Sending } from "../composer/field";
import { Help } from "../composer/help";
import { read, type Said } from "../composer/reading";
import { STEER_SAYS, SteerLine } from "../composer/steering";
import { Suggest, type Choices } from "../composer/suggest";
import { Button } from "../parts/button";
import { opening, profiles, sessions } from "../state/app";
import type { Attached } from "../state/attachments";
import type { Composing } from "../state/composing";
import type { SessionKeeper } from "../state/opened";
import { texts } from "../texts";

interface Props {
  composing: Composing;
  running: boolean;
  stopping: boolean;
  onStop: () => void;
  /** Of the session, once there is one. It may still be loading. */
  keeper?: SessionKeeper;
}

export function Composer({ composing, running, stopping, onStop, keeper }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const suggest = useMemo(() => new Suggest(), [composing]);
  const opened = keeper?.opened.value ?? null;
  const choices = (): Choices => {
    const now = opened?.head.settings.peek() ?? opening.peek();
    const { model, workspace, personality, effort, profile } = now;
    return {
      sessionId: keeper?.id ?? null,
      files: keeper?.id ?? sessions.within(workspace || profiles.peek().workspace),
      profile: profile ?? null,
      now: { model, workspace, personality, effort },
    } as Choices;
  };
  const said = read(composing.text.value);
  const carry = async (what: Said, key: string): Promise<void> =>
    carryOut(what, keeper === undefined ? null : (opened ?? (await whenOpened(keeper))), key);
  const send = (how: Sending): void =>
    composing.enter((text) => {
      const what = read(text);
      if (what.what !== "message") void composing.run((key) => carry(what, key), text);
      else void composing.send(how === "queue" ? "queue" : "steer", how === "after", text);
    });
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
      ) : composing.postponed.value !== null ? (
        <PostponedLine composing={composing} />
      ) : running && ready && plain && opened !== null ? (
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

function PostponedLine({ composing }: { composing: Composing }) {
  return (
    <p class="steerline">
      <span role="status">{texts.composer.sendsAfterUpload}</span>
      <Button kind="quiet" keys="Esc" onClick={() => composing.takeBack()}>
        {texts.composer.cancelSend}
      </Button>
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
            onClick={() => composing.detach(each.key)}
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
