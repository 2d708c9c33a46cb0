/** Under the header of a session whose folder brings along what nobody has trusted: what, and the way to look at it. */

import { useState } from "preact/hooks";
import { describedFolder } from "../api/client";
import type { SessionStore } from "../session/session_store";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { useRequest } from "../ui/use_request";
import { TrustDialog } from "./trust_dialog";

export function TrustLine({ session }: { session: SessionStore }) {
  const { workspace } = session.head.settings.value;
  // A turn may have changed what the folder brings along.
  const resting = session.head.turn.value === null;
  const folder = useRequest(() => describedFolder(workspace), [workspace, resting]);
  const [reviewing, setReviewing] = useState(false);
  const [decided, setDecided] = useState(false);
  const described = folder.value;
  if (described === null || described.workspace !== workspace || !described.digest) return null;
  if (described.trusted) {
    return decided && resting ? (
      <p class="trust-line" role="status">
        {texts.trust.done}
      </p>
    ) : null;
  }
  const close = (isTrusted: boolean): void => {
    setReviewing(false);
    setDecided(isTrusted);
    folder.again();
  };
  return (
    <section class="trust-line" aria-label={texts.trust.label}>
      <span>{texts.trust.line(described.summary ?? "")}</span>
      <Button onClick={() => setReviewing(true)}>{texts.trust.review}</Button>
      {reviewing ? <TrustDialog folder={described} onClose={close} /> : null}
    </section>
  );
}
