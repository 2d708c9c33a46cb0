/** The way in: a token, or a password. */

import { useState } from "preact/hooks";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { logIn, loginProblem } from "./login_state";

export function LoginScreen() {
  const [by, setBy] = useState<"token" | "password">("token");
  const [proof, setProof] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (): Promise<void> => {
    setBusy(true);
    await logIn({ [by]: proof.trim() });
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
        <p class="text-dim">{texts.login.lead}</p>
        <fieldset>
          <legend>{texts.login.method}</legend>
          {(["token", "password"] as const).map((way) => (
            <label key={way} class="fields-check">
              <input type="radio" name="by" checked={by === way} onChange={() => setBy(way)} />
              <span>{way === "token" ? texts.login.token : texts.login.password}</span>
            </label>
          ))}
        </fieldset>
        <input
          type="password"
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
  const { wrong, tooManyAttempts } = texts.login;
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
