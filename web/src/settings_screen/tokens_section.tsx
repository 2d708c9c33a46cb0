/** Tokens of programs: a new one is shown once; the others with their last use. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { ItemList } from "./item_list";
import { NamedItem } from "./named_item";
import { useSaving } from "./use_saving";

const words = configuration.tokens;

export function TokensSection() {
  const answer = useRequest(() => keryx.tokens(), []);
  const revoke = async (name: string): Promise<void> => {
    await keryx.revokeToken(name);
    answer.again();
  };
  return (
    <>
      <NewToken onCreated={answer.again} />
      <ItemList answer={answer} items={answer.value?.tokens ?? null} label={words.list} none={words.none}>
        {({ name, created, used }) => (
          <NamedItem
            key={name}
            name={name}
            about={
              <span>
                {words.created(created)} · {words.used(used)}
              </span>
            }
            removeWord={words.revoke}
            removeLabel={words.revokeNamed(name)}
            removeQuestion={words.reallyRevoke(name)}
            onRemove={() => revoke(name)}
          />
        )}
      </ItemList>
    </>
  );
}

/** The token is here until the section is left, and nowhere else. */
function NewToken({ onCreated }: { onCreated: () => void }) {
  const [name, setName] = useState("");
  const [token, setToken] = useState<string | null>(null);
  const [copied, setCopied] = useState(false);
  const saving = useSaving();
  const create = async (): Promise<void> => {
    setCopied(false);
    setToken((await keryx.createToken(name.trim())).token);
    setName("");
    onCreated();
  };
  const copy = async (): Promise<void> => {
    if (token === null) return;
    await navigator.clipboard.writeText(token);
    setCopied(true);
  };
  return (
    <div class="settings-screen-part">
      <form
        class="setting-field-line"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") void saving.run(create);
        }}
      >
        <input
          dir="auto"
          aria-label={words.for}
          placeholder={words.for}
          maxLength={64}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <Button type="submit" kind="main" busy={saving.state === "saving"} disabled={name.trim() === ""}>
          {words.create}
        </Button>
      </form>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
      {token === null ? null : (
        <div class="settings-screen-token" role="status">
          <p>{words.once}</p>
          <div class="setting-field-line">
            <input readOnly aria-label={words.token} value={token} onFocus={(event) => event.currentTarget.select()} />
            <Button onClick={() => void saving.run(copy)}>{copied ? words.copied : words.copy}</Button>
          </div>
        </div>
      )}
    </div>
  );
}
