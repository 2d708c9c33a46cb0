/** One session: its header, its transcript, and where one types. */

import { useEffect, useLayoutEffect } from "preact/hooks";
import { cancelTurn } from "../api/keryx";
import { Button } from "../parts/button";
import { isTour } from "../setup/steps";
import { NoModelLine, TourLine } from "../setup/tourline";
import { attempt, composingOf, listShown, sessions } from "../state/app";
import type { Opened, SessionKeeper } from "../state/opened";
import { go } from "../state/route";
import { texts } from "../texts";
import { Announcer } from "./announcer";
import { Asks } from "./asks";
import { Composer } from "./composer";
import { Header, ListButton } from "./header";
import { Queue } from "./queue";
import { toNewest, Transcript } from "./transcript";

export function SessionScreen({ keeper }: { keeper: SessionKeeper }) {
  const opened = keeper.opened.value;
  const problem = keeper.problem.value;
  if (problem !== null) {
    return (
      <>
        <Unopened title="" />
        <div class="centre">
          <p>{problem.kind === "not_found" ? texts.connection.gone : texts.connection.failed}</p>
          <p class="dim">{problem.kind === "unreachable" ? texts.unreachable : problem.message}</p>
          <Button onClick={() => go(null)}>{texts.list.newSession}</Button>
        </div>
      </>
    );
  }
  // One types below while it is loaded above: the box is the same before and after.
  return (
    <>
      {opened === null ? <Loading id={keeper.id} /> : <Loaded opened={opened} keeper={keeper} />}
      <Dock key="dock" keeper={keeper} />
    </>
  );
}

function Unopened({ title }: { title: string }) {
  return (
    <header class="head">
      <div class="bar">
        <ListButton />
        {title ? <h1>{title}</h1> : null}
      </div>
    </header>
  );
}

function Loading({ id }: { id: string }) {
  return (
    <>
      <Unopened title={sessions.summary(id)?.value?.title ?? ""} />
      <p class="centre dim">{texts.loading}</p>
    </>
  );
}

function Loaded({ opened, keeper }: { opened: Opened; keeper: SessionKeeper }) {
  const { model } = opened.head.settings.value;
  return (
    <>
      <Header opened={opened} />
      {isTour(model) ? <TourLine opened={opened} keeper={keeper} /> : model === "" ? <NoModelLine /> : null}
      {keeper.connection.value === "lost" ? (
        <p class="lost" role="status">
          {texts.connection.lost}
        </p>
      ) : null}
      <Transcript key={opened.id} opened={opened} />
      <Announcer opened={opened} />
    </>
  );
}

function Dock({ keeper }: { keeper: SessionKeeper }) {
  const opened = keeper.opened.value;
  const composing = composingOf(keeper.id);
  const turn = opened?.head.turn.value ?? null;
  const stop = (): void => {
    const running = keeper.opened.peek()?.head.turn.peek() ?? null;
    if (running !== null) void attempt(() => cancelTurn(keeper.id, running.turnId));
  };
  useLayoutEffect(() => {
    if (opened === null) return;
    composing.restore(opened.draft);
    // Whoever says something wants to see what becomes of it.
    composing.onSent = () => toNewest(opened);
  }, [composing, opened]);
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
    <div class="dock">
      <div class="col">
        {opened === null ? null : <Asks opened={opened} />}
        {opened === null ? null : <Queue opened={opened} />}
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
