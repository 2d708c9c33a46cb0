/** Where one types: text and files, and what is done with them while a turn runs or not. */

import { useMemo, useRef, useState } from "preact/hooks";
import { profiles } from "../session/choices";
import { opening } from "../session/new_session";
import type { SessionKeeper } from "../session/session_keeper";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";
import { Button } from "../ui/button";
import type { AttachedFile } from "./attachments";
import { type Choices, Completion } from "./completion";
import type { ComposerState } from "./composer_state";
import { Dictation } from "./dictation";
import { type ParsedText, parseText } from "./parse_text";
import { runCommand, whenOpened } from "./run_command";
import { STEER_SAYS, SteerLine } from "./steer_line";
import { type Sending, TextField, textFile } from "./text_field";

interface Props {
  composing: ComposerState;
  running: boolean;
  stopping: boolean;
  onStop: () => void;
  /** Of the session, once there is one. It may still be loading. */
  keeper?: SessionKeeper;
  takesFocus?: boolean;
}

export function Composer({ composing, running, stopping, onStop, keeper, takesFocus = true }: Props) {
  const picker = useRef<HTMLInputElement>(null);
  const [over, setOver] = useState(false);
  const completion = useMemo(() => new Completion(), [composing]);
  const session = keeper?.store.value ?? null;
  const choices = (): Choices => {
    const now = session?.head.settings.peek() ?? opening.peek();
    const { model, workspace, personality, effort, profile } = now;
    return {
      sessionId: keeper?.id ?? null,
      files: keeper?.id ?? sessions.within(workspace || profiles.peek().workspace),
      profile: profile ?? null,
      now: { model, workspace, personality, effort },
    } as Choices;
  };
  const parsed = parseText(composing.text.value);
  const carry = async (what: ParsedText, key: string): Promise<void> =>
    runCommand(what, keeper === undefined ? null : (session ?? (await whenOpened(keeper))), key);
  const send = (how: Sending): void =>
    composing.enter((text) => {
      const what = parseText(text);
      if (what.what !== "message") void composing.run((key) => carry(what, key), text);
      else void composing.send(how === "queue" ? "queue" : "steer", how === "after", text);
    });
  const ready = composing.ready.value;
  // While something is completed, that is what the person looks at.
  const plain =
    parsed.what === "message" && completion.list.value.length === 0 && !composing.text.value.startsWith("/");
  return (
    <form
      class={over ? "composer is-over" : "composer"}
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
      <TextField
        composing={composing}
        completion={completion}
        choices={choices}
        running={running}
        onSend={send}
        onStop={onStop}
        takesFocus={takesFocus}
      />
      <ReturnedNote composing={composing} />
      <Failure composing={composing} />
      {parsed.what === "terminal" || parsed.what === "code" ? (
        <p class="composer-line">{texts.commands.runs[parsed.what]}</p>
      ) : composing.postponed.value !== null ? (
        <PostponedLine composing={composing} />
      ) : running && ready && plain && session !== null ? (
        <SteerLine session={session} onAfter={() => send("after")} />
      ) : null}
      {/* The field keeps the focus: suggestions that close would move the button away from under the finger. */}
      <div class="composer-actions" onMouseDown={(event) => event.preventDefault()}>
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
        <Dictation composing={composing} running={running} />
        <span class="layout-grow" />
        {parsed.what !== "message" ? (
          <Button kind="main" keys="↵" disabled={composing.sending.value} type="submit">
            {texts.commands.run}
          </Button>
        ) : running ? (
          <>
            <Button keys="↵" disabled={!ready} type="submit">
              {texts.composer.queue}
            </Button>
            <Button
              keys={texts.composer.steerKeys}
              disabled={!ready}
              onClick={() => send("steer")}
              describedBy={STEER_SAYS}
            >
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
    </form>
  );
}

function ReturnedNote({ composing }: { composing: ComposerState }) {
  const note = composing.note.value;
  if (note === "") return null;
  return (
    <p class="composer-line" role="alert">
      {note}
    </p>
  );
}

function Failure({ composing }: { composing: ComposerState }) {
  const problem = composing.problem.value;
  if (problem === null) return null;
  const message = problem.kind === "unreachable" ? texts.unreachable : problem.message;
  return (
    <p class="text-error" role="alert">
      {parseText(composing.text.value).what === "message" ? texts.composer.failed : texts.commands.failed}{" "}
      {texts.problem(message, problem.hint)}{" "}
      {problem.kind === "too_long" ? (
        <Button onClick={() => composing.attachText(textFile(composing.text.peek()))}>
          {texts.composer.attachText}
        </Button>
      ) : null}
    </p>
  );
}

function PostponedLine({ composing }: { composing: ComposerState }) {
  return (
    <p class="composer-line">
      <span role="status">{texts.composer.sendsAfterUpload}</span>
      <Button kind="quiet" keys="Esc" onClick={() => composing.takeBack()}>
        {texts.composer.cancelSend}
      </Button>
    </p>
  );
}

function Files({ composing }: { composing: ComposerState }) {
  const list = composing.attachments.list.value;
  if (list.length === 0) return null;
  return (
    <ul class="composer-files" aria-label={texts.composer.files}>
      {list.map((attachment) => (
        <li key={attachment.key} class={attachment.problem === null ? "" : "is-bad"}>
          {attachment.preview === null ? null : <img src={attachment.preview} alt="" />}
          <span class="composer-file-name" dir="auto">
            {attachment.name}
          </span>
          <small>{fileState(attachment)}</small>
          <button
            type="button"
            class="button-x"
            aria-label={texts.composer.remove(attachment.name)}
            onClick={() => composing.detach(attachment.key)}
          >
            ✕
          </button>
        </li>
      ))}
    </ul>
  );
}

function fileState(attachment: AttachedFile): string {
  if (attachment.problem !== null) return attachment.problem.message || texts.unreachable;
  if (attachment.uploadId === null) return texts.composer.uploading;
  return attachment.size === null ? "" : texts.composer.size(attachment.size);
}
