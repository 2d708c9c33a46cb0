/** Somebody changed the same setting in the file: both values, and the choice between them. */

import { configuration as words } from "../texts/configuration";
import { Button } from "../ui/button";
import { attempt } from "../ui/notice";
import { conflicts, dropConflict, save } from "./config_state";
import { type Conflict, isSecret } from "./document";

export function ConflictBoxes() {
  return (
    <div aria-live="assertive">
      {conflicts.value.map((conflict) => (
        <ConflictBox key={conflict.path.join(".")} conflict={conflict} />
      ))}
    </div>
  );
}

function ConflictBox({ conflict }: { conflict: Conflict }) {
  const name = conflict.path.join(".");
  // If the file changes once more, there is another conflict.
  const insist = (): void => {
    dropConflict(conflict.path);
    void attempt(() => save([{ path: conflict.path, value: conflict.value }]));
  };
  return (
    <section class="settings-screen-conflict" aria-label={`${words.conflict.title}: ${name}`}>
      <h2>
        {words.conflict.title}: <code>{name}</code>
      </h2>
      <p>{words.conflict.lead}</p>
      <dl>
        <dt>{words.conflict.theirs}</dt>
        <dd>
          <code dir="auto">{asText(conflict.theirs)}</code>
        </dd>
        <dt>{words.conflict.yours}</dt>
        <dd>
          <code dir="auto">{asText(conflict.value)}</code>
        </dd>
      </dl>
      <div class="layout-buttons">
        <Button onClick={() => dropConflict(conflict.path)}>{words.conflict.keepTheirs}</Button>
        <Button kind="main" onClick={insist}>
          {words.conflict.useMine}
        </Button>
      </div>
    </section>
  );
}

function asText(value: unknown): string {
  if (value === undefined) return words.conflict.nothing;
  return JSON.stringify(value, (_key, part: unknown) => (isSecret(part) ? words.conflict.secret : part));
}
