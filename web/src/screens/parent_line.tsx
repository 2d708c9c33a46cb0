/** Under the header of a child agent: the way back to the session that started it. */

import { addressOf } from "../navigation/route";
import type { SessionStore } from "../session/session_store";
import { sessions } from "../session_list/sessions";
import { texts } from "../texts";

export function ParentLine({ session }: { session: SessionStore }) {
  const { parent } = session;
  if (parent === null) return null;
  const title = sessions.summary(parent.session_id)?.value.title || texts.agents.parent;
  return (
    <p class="parent-line">
      <span class="text-dim">{texts.agents.childOf}</span>{" "}
      <a href={addressOf(parent.session_id)}>
        <span aria-hidden="true">← </span>
        <bdi>{title}</bdi>
      </a>
    </p>
  );
}
