/** Carries out what is no message: commands of the terminal, code, slash commands. */

import { effect, signal } from "@preact/signals";
import * as keryx from "../api/client";
import { newSessionId } from "../api/ids";
import { Problem } from "../api/problem";
import type { SettingsChanges } from "../api/types";
import { go } from "../navigation/route";
import { compact } from "../session/compact";
import { beginSession, opening } from "../session/new_session";
import type { SessionKeeper } from "../session/session_keeper";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { composerOf } from "./composers";
import type { ParsedText, SlashName } from "./parse_text";
import { saidIn } from "./said_before";

export const helpShown = signal(false);

const LONGEST_TITLE = 60;

function refuse(message: string, hint = ""): never {
  throw new Problem("refused", 0, message, hint);
}

/** The session, once it is loaded; whoever says something to it before that waits. */
export function whenOpened(keeper: SessionKeeper): Promise<SessionStore> {
  return new Promise((resolve, reject) => {
    effect(function (this: { dispose: () => void }) {
      const session = keeper.store.value;
      const problem = keeper.problem.value;
      if (session !== null) resolve(session);
      else if (problem !== null) reject(problem);
      else return;
      this.dispose();
    });
  });
}

/** Does it; the key makes a second try of the same do nothing twice. */
export async function runCommand(parsed: ParsedText, session: SessionStore | null, key: string): Promise<void> {
  switch (parsed.what) {
    case "terminal":
      return run(session, "terminal", { command: parsed.command }, `! ${parsed.command}`, key);
    case "code":
      return run(session, "execute_code", { code: parsed.code }, parsed.code, key);
    case "unknown":
      return refuse(texts.commands.unknown(parsed.name), texts.commands.unknownHint);
    case "slash":
      if (parsed.slash.inSession && session === null) return refuse(texts.commands.needsSession);
      if (parsed.slash.takes === "nothing") return act(parsed.slash.name, session);
      // It may take a minute, and one goes on typing meanwhile.
      if (parsed.slash.name === "compact") return void compact(session!.id, parsed.rest.trim());
      if (parsed.rest === "") {
        return refuse(texts.commands.needsValue(parsed.slash.name, texts.commands.takes[parsed.slash.name] ?? ""));
      }
      return choose(parsed.slash.name, parsed.rest, session);
    case "message":
      return;
  }
}

async function run(
  session: SessionStore | null,
  tool: string,
  args: Record<string, unknown>,
  title: string,
  key: string,
): Promise<void> {
  const call = (id: string): Promise<unknown> => keryx.runCall(id, tool, args, key);
  if (session !== null) await call(session.id);
  else await beginSession({ title: title.split("\n", 1)[0]!.slice(0, LONGEST_TITLE) }, call);
}

async function choose(name: SlashName, rest: string, session: SessionStore | null): Promise<void> {
  const value = rest === texts.commands.default && (name === "personality" || name === "effort") ? null : rest;
  if (session !== null) return void (await keryx.changeSession(session.id, { [name]: value } as SettingsChanges));
  const { [name as "model"]: _before, ...others } = opening.value;
  opening.value = value === null ? others : { ...others, [name]: value };
}

async function act(name: SlashName, session: SessionStore | null): Promise<void> {
  if (name === "help") {
    helpShown.value = true;
    return;
  }
  const { id, head } = session!;
  if (name === "stop") {
    const turn = head.turn.peek() ?? refuse(texts.commands.nothingRuns);
    await keryx.cancelTurn(id, turn.turnId);
  } else if (name === "fork") {
    const forked = await keryx.fork(id, null, newSessionId());
    go(forked.summary.session_id);
  } else if (name === "undo") {
    const turnId = lastTurn(session!) ?? refuse(texts.commands.noTurn);
    const said = saidIn(session!, turnId);
    await keryx.undo(id, turnId, true);
    if (said !== null) composerOf(id).putBack(said);
  }
}

function lastTurn(session: SessionStore): string | null {
  const keys = session.order.peek();
  for (let at = keys.length - 1; at >= 0; at--) {
    const row = session.peek(keys[at]!);
    if (row?.kind === "message" && row.turnId !== null) return row.turnId;
  }
  return null;
}
