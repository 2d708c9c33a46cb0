/** The people who share this server: the owner adds them, limits what they spend, and removes them. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import type { UserInfo } from "../api/wire";
import { texts } from "../texts";
import { money, shortTime, tokens } from "../texts/amounts";
import { configuration } from "../texts/configuration";
import { Button } from "../ui/button";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { ItemList } from "./item_list";
import { NamedItem } from "./named_item";
import { useSaving } from "./use_saving";

const words = configuration.users;

export function UsersSection() {
  const answer = useRequest(() => keryx.users(), []);
  const remove = async (name: string): Promise<void> => {
    await keryx.removeUser(name);
    answer.again();
  };
  return (
    <>
      <NewUser onAdded={answer.again} />
      <ItemList answer={answer} items={answer.value?.users ?? null} label={words.list} none={words.none}>
        {(user) => (
          <NamedItem
            key={user.name}
            name={user.name}
            about={<About user={user} />}
            form={(close) => <UserForm user={user} onDone={answer.again} onClose={close} />}
            removeQuestion={words.reallyRemove(user.name)}
            onRemove={() => remove(user.name)}
          />
        )}
      </ItemList>
    </>
  );
}

function About({ user }: { user: UserInfo }) {
  const facts = [
    user.disabled ? words.disabled : "",
    words.today(tokens(user.tokens_today), money(user.cost_today)),
    user.cost_per_day === null ? "" : words.atMost(money(user.cost_per_day)),
    user.last_active === null ? words.neverActive : words.lastActive(shortTime(user.last_active)),
  ];
  return (
    <>
      <span>{facts.filter(Boolean).join(" · ")}</span>
      <span>{user.folder}</span>
    </>
  );
}

function NewUser({ onAdded }: { onAdded: () => void }) {
  const [name, setName] = useState("");
  const [password, setPassword] = useState("");
  const saving = useSaving();
  const add = async (): Promise<void> => {
    await keryx.addUser(name.trim(), password);
    setName("");
    setPassword("");
    onAdded();
  };
  return (
    <div class="settings-screen-part">
      <form
        class="setting-field-line"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "" && password !== "") void saving.run(add);
        }}
      >
        <input
          aria-label={words.name}
          placeholder={words.name}
          autocomplete="off"
          maxLength={32}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <PasswordField label={words.password} value={password} onInput={setPassword} />
        <Button
          type="submit"
          kind="main"
          busy={saving.state === "saving"}
          disabled={name.trim() === "" || password === ""}
        >
          {words.add}
        </Button>
      </form>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
    </div>
  );
}

interface FormProps {
  user: UserInfo;
  onDone: () => void;
  onClose: () => void;
}

function UserForm({ user, onDone, onClose }: FormProps) {
  const [limit, setLimit] = useState(user.cost_per_day === null ? "" : String(user.cost_per_day));
  const [password, setPassword] = useState("");
  const [disabled, setDisabled] = useState(user.disabled);
  const saving = useSaving();
  const save = async (): Promise<void> => {
    const cost = limit.trim() === "" ? null : Number(limit);
    await keryx.changeUser(user.name, {
      disabled,
      cost_per_day: cost,
      ...(password === "" ? {} : { password }),
    });
    onDone();
    onClose();
  };
  return (
    <form
      class="fields settings-screen-part"
      aria-label={configuration.editNamed(user.name)}
      onSubmit={(event) => {
        event.preventDefault();
        void saving.run(save);
      }}
    >
      <label>
        <span>{words.costPerDay}</span>
        <input
          type="number"
          min={0}
          step="any"
          placeholder={configuration.noLimit}
          value={limit}
          onInput={(event) => setLimit(event.currentTarget.value)}
        />
      </label>
      <PasswordField label={words.newPassword} value={password} onInput={setPassword} />
      <label class="fields-check">
        <input type="checkbox" checked={disabled} onChange={(event) => setDisabled(event.currentTarget.checked)} />
        <span>{words.mayNotSignIn}</span>
      </label>
      {saving.problem === null ? null : <Refusal problem={saving.problem} />}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.cancel}</Button>
        <Button type="submit" kind="main" busy={saving.state === "saving"}>
          {texts.save}
        </Button>
      </div>
    </form>
  );
}

interface PasswordProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
}

function PasswordField({ label, value, onInput }: PasswordProps) {
  return (
    <input
      type="password"
      autocomplete="new-password"
      aria-label={label}
      placeholder={label}
      value={value}
      onInput={(event) => onInput(event.currentTarget.value)}
    />
  );
}
