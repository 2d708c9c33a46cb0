/** The line of a child agent leads to its session. */

import type { ComponentChildren } from "preact";
import { go } from "../navigation/route";
import { childSessionOf } from "../session/child_agents";
import { texts } from "../texts";
import { attempt } from "../ui/notice";

interface Props {
  /** The session that started the child. */
  parent: string;
  callId: string;
  children: ComponentChildren;
}

export function openAgent(parent: string, callId: string): void {
  void attempt(async () => go(await childSessionOf(parent, callId)));
}

export function AgentLink({ parent, callId, children }: Props) {
  return (
    <button
      type="button"
      class="disclosure agent-link"
      title={texts.agents.open}
      onClick={() => openAgent(parent, callId)}
    >
      {children}
      <span class="agent-link-arrow" aria-hidden="true">
        →
      </span>
    </button>
  );
}
