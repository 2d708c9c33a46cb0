/** Carries out what is no message: commands of the terminal, code, slash commands. */

import { effect, signal } from "@preact/signals";
import { newSessionId } from "../api/ids";
import * as keryx from "../api/keryx";
import { Problem } from "../api/problem";
import type { Changes } from "../api/shapes";
import { begin, opening } from "../state/app";
import type { Opened, SessionKeeper } from "../state/opened";
import { go } from "../state/route";
import { sumUp } from "../state/summing";
import { texts } from "../texts";
import type { Said, SlashName } from "./reading";

export const helpShown = signal(false);

const LONGEST_TITLE = 60;

function refuse(message: string, hint = ""): never {
  throw new Problem("refused", 0, message, hint);
}

/** The session, once it is loaded; whoever says something to it before that waits. */
export function whenOpened(keeper: SessionKeeper): Promise<Opened> {
  return new Promise((resolve, reject) => {
    effect(function (this: { dispose: () => void }) {
      const opened = keeper.opened.value;
      const problem = keeper.problem.value;
      if (opened !== null) resolve(opened);
      else if (problem !== null) reject(problem);
      else return;
      this.dispose();
    });
  });
}

/** Does it; the key makes a second try of the same do nothing twice. */
export async function carryOut(said: Said, opened: Opened | null, key: string): Promise<void> {
  switch (said.what) {
    case "terminal":
      return run(opened, "terminal", { command: said.command }, `! ${said.command}`, key);
    case "code":
      return run(opened, "execute_code", { code: said.code }, said.code, key);
    case "unknown":
      return refuse(texts.commands.unknown(said.name), texts.commands.unknownHint);
    case "slash":
      if (said.slash.inSession && opened === null) return refuse(texts.commands.needsSession);
      if (said.slash.takes === "nothing") return act(said.slash.name, opened);
      if (said.rest === "") {
        return refuse(texts.commands.needsValue(said.slash.name, texts.commands.takes[said.slash.name] ?? ""));
      }
      return choose(said.slash.name, said.rest, opened);
    case "message":
      return;
  }
}

async function run(
  opened: Opened | null,
  tool: string,
  args: Record<string, unknown>,
  title: string,
  key: string,
): Promise<void> {
  const call = (id: string): Promise<unknown> => keryx.runCall(id, tool, args, key);
  if (opened !== null) await call(opened.id);
  else await begin({ title: title.split("\n", 1)[0]!.slice(0, LONGEST_TITLE) }, call);
}

async function choose(name: SlashName, rest: string, opened: Opened | null): Promise<void> {
  const value = rest === texts.commands.default && (name === "personality" || name === "effort") ? null : rest;
  if (opened !== null) return void (await keryx.changeSession(opened.id, { [name]: value } as Changes));
  const { [name as "model"]: _before, ...others } = opening.value;
  opening.value = value === null ? others : { ...others, [name]: value };
}

async function act(name: SlashName, opened: Opened | null): Promise<void> {
  if (name === "help") {
    helpShown.value = true;
    return;
  }
  const { id, head } = opened!;
  if (name === "stop") {
    const turn = head.turn.peek() ?? refuse(texts.commands.nothingRuns);
    await keryx.cancelTurn(id, turn.turnId);
  } else if (name === "fork") {
    const forked = await keryx.fork(id, null, newSessionId());
    go(forked.summary.session_id);
  } else if (name === "undo") {
    await keryx.undo(id, lastTurn(opened!) ?? refuse(texts.commands.noTurn), true);
  } else if (name === "compact") {
    // It may take a minute, and one goes on typing meanwhile.
    void sumUp(id);
  }
}

function lastTurn(opened: Opened): string | null {
  const keys = opened.order.peek();
  for (let at = keys.length - 1; at >= 0; at--) {
    const row = opened.peek(keys[at]!);
    if (row?.kind === "message" && row.turnId !== null) return row.turnId;
  }
  return null;
}
