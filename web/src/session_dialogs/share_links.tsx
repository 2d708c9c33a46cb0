/** Links that work, each with the way to end it. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { ShareLink } from "../api/types";
import { texts } from "../texts";
import { fullTime } from "../texts/amounts";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";

interface Props {
  links: readonly ShareLink[];
  /** Whether the links are of several sessions, so that each says which. */
  titled?: boolean;
  onChange: () => void;
}

export function ShareLinks({ links, titled = false, onChange }: Props) {
  const words = texts.sharing;
  const [problem, setProblem] = useState<Problem | null>(null);
  const revoke = async ({ session_id, share_id }: ShareLink): Promise<void> => {
    try {
      await keryx.revokeShare(session_id, share_id);
      setProblem(null);
    } catch (error) {
      setProblem(asProblem(error));
    }
    onChange();
  };
  return (
    <>
      {problem === null ? null : <Refusal problem={problem} />}
      {links.length === 0 ? <p role="status">{words.none}</p> : null}
      <ul class="session-dialogs-list" aria-label={words.list}>
        {links.map((link) => (
          <li key={link.share_id} class="session-dialogs-link">
            <div>
              {titled ? <b dir="auto">{link.title || texts.list.untitled}</b> : null}
              <span class="text-dim">{about(link)}</span>
            </div>
            <Button label={words.revokeOf(`${link.title}, ${about(link)}`)} onClick={() => void revoke(link)}>
              {words.revoke}
            </Button>
          </li>
        ))}
      </ul>
    </>
  );
}

function about({ created_at, expires_at, up_to }: ShareLink): string {
  const words = texts.sharing;
  const end = expires_at === null ? words.always : words.until(fullTime(expires_at));
  return [words.created(fullTime(created_at)), end, ...(up_to === null ? [words.following] : [])].join(" · ");
}
