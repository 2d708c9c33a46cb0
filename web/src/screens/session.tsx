/** One session: its header, its transcript, and where one types. */

import { useEffect } from "preact/hooks";
import { cancelTurn } from "../api/keryx";
import { Button } from "../parts/button";
import { isTour } from "../setup/steps";
import { NoModelLine, TourLine } from "../setup/tourline";
import { attempt, composingOf, listShown } from "../state/app";
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
  if (problem !== null || opened === null) {
    return (
      <>
        <header class="head">
          <div class="bar">
            <ListButton />
          </div>
        </header>
        {problem === null ? (
          <p class="centre dim">{texts.loading}</p>
        ) : (
          <div class="centre">
            <p>{problem.kind === "not_found" ? texts.connection.gone : texts.connection.failed}</p>
            <p class="dim">{problem.kind === "unreachable" ? texts.unreachable : problem.message}</p>
            <Button onClick={() => go(null)}>{texts.list.fresh}</Button>
          </div>
        )}
      </>
    );
  }
  return (
    <>
      <Header opened={opened} />
      {isTour(opened.head.settings.value.model) ? (
        <TourLine opened={opened} keeper={keeper} />
      ) : opened.head.settings.value.model === "" ? (
        <NoModelLine />
      ) : null}
      {keeper.connection.value === "lost" ? (
        <p class="lost" role="status">
          {texts.connection.lost}
        </p>
      ) : null}
      <Transcript key={opened.id} opened={opened} />
      <Announcer opened={opened} />
      <Dock opened={opened} />
    </>
  );
}

function Dock({ opened }: { opened: Opened }) {
  const composing = composingOf(opened.id);
  const turn = opened.head.turn.value;
  const stop = (): void => {
    const running = opened.head.turn.peek();
    if (running !== null) void attempt(() => cancelTurn(opened.id, running.turnId));
  };
  useEffect(() => composing.restore(opened.draft), [composing, opened]);
  useEffect(() => {
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
  }, [opened]);
  return (
    <div class="dock">
      <div class="col">
        <Asks opened={opened} />
        <Queue opened={opened} />
        <Composer
          composing={composing}
          running={turn !== null}
          stopping={turn?.cancelling ?? false}
          onStop={stop}
          opened={opened}
        />
      </div>
    </div>
  );
}
