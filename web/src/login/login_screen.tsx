/** The way in: a token, or a password; named users give their name too. */

import { useEffect, useState } from "preact/hooks";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { asksName, logIn, loginProblem, readWhetherNamesAreAsked } from "./login_state";

export function LoginScreen() {
  const [chosen, setBy] = useState<"token" | "password" | null>(null);
  const [name, setName] = useState("");
  const [proof, setProof] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => void readWhetherNamesAreAsked(), []);
  const by = chosen ?? (asksName.value ? "password" : "token");
  const submit = async (): Promise<void> => {
    setBusy(true);
    const user = by === "password" && name.trim() !== "" ? { name: name.trim() } : {};
    await logIn({ [by]: proof.trim(), ...user });
    setBusy(false);
  };
  return (
    <main class="login-screen">
      <form
        aria-label={texts.login.title}
        onSubmit={(event) => {
          event.preventDefault();
          if (proof.trim()) void submit();
        }}
      >
        <h1>{texts.login.title}</h1>
        <p class="text-dim">{asksName.value ? texts.login.leadForUsers : texts.login.lead}</p>
        <fieldset>
          <legend>{texts.login.method}</legend>
          {(["token", "password"] as const).map((way) => (
            <label key={way} class="fields-check">
              <input type="radio" name="by" checked={by === way} onChange={() => setBy(way)} />
              <span>{way === "token" ? texts.login.token : texts.login.password}</span>
            </label>
          ))}
        </fieldset>
        {by === "password" && asksName.value ? (
          <input
            autocomplete="username"
            autocapitalize="off"
            placeholder={texts.login.name}
            aria-label={texts.login.name}
            title={texts.login.nameHint}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        ) : null}
        <input
          type="password"
          placeholder={by === "token" ? texts.login.token : texts.login.password}
          autocomplete={by === "token" ? "off" : "current-password"}
          aria-label={by === "token" ? texts.login.token : texts.login.password}
          value={proof}
          onInput={(event) => setProof(event.currentTarget.value)}
        />
        <Trouble />
        <Button type="submit" kind="main" disabled={busy || proof.trim() === ""}>
          {texts.login.submit}
        </Button>
      </form>
    </main>
  );
}

function Trouble() {
  const problem = loginProblem.value;
  if (problem === null) return null;
  const { tooManyAttempts } = texts.login;
  const wrong = asksName.value ? texts.login.wrongName : texts.login.wrong;
  const said = {
    unauthorized: problem.message === texts.login.linkUsed ? texts.login.linkUsed : wrong,
    busy: tooManyAttempts,
    unreachable: texts.unreachable,
  }[problem.kind as string];
  return (
    <p class="text-error" role="alert">
      {said ?? problem.message}
    </p>
  );
}
