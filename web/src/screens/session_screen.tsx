/** One session: its header, its transcript, and where one types. */

import { effect, untracked } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo } from "preact/hooks";
import { pictureAddress } from "../api/client";
import type { QueuedMessage } from "../api/types";
import { ApprovalRequests } from "../approvals/requests";
import { AskedArguments } from "../calls/full_text";
import { Composer } from "../composer/composer";
import type { ComposerState } from "../composer/composer_state";
import { composerOf } from "../composer/composers";
import { openFile } from "../inspector/selection";
import { listShown } from "../navigation/panels";
import { go } from "../navigation/route";
import { Queue } from "../queue/queue";
import { StopChoice, stopTurn } from "../queue/stop_choice";
import type { SessionKeeper } from "../session/session_keeper";
import type { SessionStore } from "../session/session_store";
import { textName, unsavedTexts } from "../session/unsaved_texts";
import { sessions } from "../session_list/sessions";
import { isTour } from "../setup/setup_state";
import { NoModelLine, TourLine } from "../setup/tour_line";
import { texts } from "../texts";
import { Announcer } from "../transcript/announcer";
import { Transcript, toNewest } from "../transcript/transcript";
import { TrustLine } from "../trust/trust_line";
import { Button } from "../ui/button";
import { FilesContext } from "../ui/markdown/markdown";
import { Header, ListButton } from "./header";
import { ParentLine } from "./parent_line";
import { PlanBox } from "./plan_box";
import { StageNotice } from "./stage_notice";

export function SessionScreen({ keeper }: { keeper: SessionKeeper }) {
  const session = keeper.store.value;
  const problem = keeper.problem.value;
  if (problem !== null) {
    return (
      <>
        <Unopened title="" />
        <div class="layout-centre">
          <p>{problem.kind === "not_found" ? texts.connection.gone : texts.connection.failed}</p>
          <p class="text-dim">{problem.kind === "unreachable" ? texts.unreachable : problem.message}</p>
          <Button onClick={() => go(null)}>{texts.list.newSession}</Button>
        </div>
        <StageNotice />
      </>
    );
  }
  // One types below while it is loaded above: the box is the same before and after.
  return (
    <>
      {session === null ? <Loading id={keeper.id} /> : <Loaded session={session} keeper={keeper} />}
      <StageNotice key="notice" />
      <Dock key="dock" keeper={keeper} />
    </>
  );
}

function Unopened({ title }: { title: string }) {
  return (
    <header class="header">
      <div class="header-bar">
        <ListButton />
        {title ? <h1 dir="auto">{title}</h1> : null}
      </div>
    </header>
  );
}

function Loading({ id }: { id: string }) {
  return (
    <>
      <Unopened title={sessions.summary(id)?.value?.title ?? ""} />
      <p class="layout-centre text-dim">{texts.loading}</p>
    </>
  );
}

function Loaded({ session, keeper }: { session: SessionStore; keeper: SessionKeeper }) {
  const { model } = session.head.settings.value;
  const files = useMemo(
    () => ({ picture: (path: string) => pictureAddress(session.id, path), open: openFile }),
    [session.id],
  );
  return (
    <>
      <Header session={session} />
      <ParentLine session={session} />
      <TrustLine session={session} />
      {isTour(model) ? <TourLine session={session} keeper={keeper} /> : model === "" ? <NoModelLine /> : null}
      {keeper.connection.value === "lost" ? (
        <p class="text-lost" role="status">
          {texts.connection.lost}
        </p>
      ) : null}
      <FilesContext.Provider value={files}>
        <Transcript key={session.id} session={session} />
      </FilesContext.Provider>
      <Announcer session={session} />
    </>
  );
}

/** What was typed for a queued message or a question that is gone stands in the message box, and why. */
function returnLeftOver(session: SessionStore, composing: ComposerState): void {
  const { queue, steers, questions } = session.head;
  const messages = [...queue.value, ...steers.value].map((message) => textName.queued(message.message_id));
  const answers = questions.value.map((question) => textName.answer(question.question_id));
  const unsaved = unsavedTexts(session.id);
  const left = {
    queued: unsaved.takeLeftOver("queued", new Set(messages)),
    answer: unsaved.takeLeftOver("answer", new Set(answers)),
  };
  untracked(() => {
    for (const kind of ["queued", "answer"] as const)
      for (const text of left[kind]) composing.putBack({ text, attachments: [] }, texts.composer.returned[kind]);
  });
}

function Dock({ keeper }: { keeper: SessionKeeper }) {
  const session = keeper.store.value;
  const composing = composerOf(keeper.id);
  const turn = session?.head.turn.value ?? null;
  const stop = (): void => {
    const opened = keeper.store.peek();
    if (opened !== null) stopTurn(opened);
  };
  const takeBack = (messages: readonly QueuedMessage[]): void => {
    for (const { text, attachments = [] } of messages.toReversed()) {
      const named = attachments.map(({ blob, name, media_type }) => ({
        upload_id: blob,
        name: name || blob,
        media_type,
      }));
      composing.putBack({ text, attachments: named });
    }
  };
  useLayoutEffect(() => {
    if (session === null) return;
    composing.restore(session.draft);
    // Whoever says something wants to see what becomes of it.
    composing.onSent = () => toNewest(session);
  }, [composing, session]);
  useEffect(
    () => (session === null ? undefined : effect(() => returnLeftOver(session, composing))),
    [composing, session],
  );
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      if (event.key !== "Escape" || event.defaultPrevented || listShown.peek()) return;
      // Escape in another field or in a dialog leaves that, and nothing more.
      if ((event.target as Element).closest("input, select, textarea, dialog")) return;
      stop();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [keeper]);
  return (
    <div class="footer">
      <div class="footer-column">
        {session === null ? null : (
          <ApprovalRequests
            session={session}
            isDraftEmpty={() => composing.isEmpty}
            show={(approval) => <AskedArguments approval={approval} sessionId={session.id} />}
          />
        )}
        {session === null ? null : <PlanBox session={session} />}
        {session === null ? null : <Queue session={session} />}
        {session === null ? null : <StopChoice session={session} onWithdrawn={takeBack} />}
        <Composer
          key="composer"
          composing={composing}
          running={turn !== null}
          stopping={turn?.cancelling ?? false}
          onStop={stop}
          keeper={keeper}
        />
      </div>
    </div>
  );
}
