/** All that a folder brings along, with the commands that it would run, and the decision about it. */

import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { trustFolder } from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { DescribedFolder } from "../api/types";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";

interface Props {
  folder: DescribedFolder;
  onClose: (isTrusted: boolean) => void;
}

export function TrustDialog({ folder, onClose }: Props) {
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const words = texts.trust;
  const trust = async (): Promise<void> => {
    setBusy(true);
    try {
      await trustFolder(folder.workspace, folder.digest ?? "");
      onClose(true);
    } catch (error) {
      setProblem(asProblem(error));
      setBusy(false);
    }
  };
  const { servers = [], hooks = [], skills = [], problems = [] } = folder;
  return (
    <Dialog title={words.title} onClose={() => onClose(false)} kind="trust-dialog">
      <h2>{words.title}</h2>
      <p class="trust-dialog-path" dir="auto">
        {folder.workspace}
      </p>
      <p class="text-dim">{words.lead}</p>
      <Part title={words.servers}>{servers.map(({ name, runs }) => line(name, runs))}</Part>
      <Part title={words.hooks}>
        {hooks.map(({ name, event, match, runs }) => line(`${name}: ${words.hook(event, match.join(", "))}`, runs))}
      </Part>
      <Part title={words.skills}>
        {skills.map(({ name, description }) => (
          <li key={name}>
            <b dir="auto">{name}</b>
            <span dir="auto">{description}</span>
          </li>
        ))}
      </Part>
      {problems.map((text) => (
        <p key={text} class="text-error">
          {text}
        </p>
      ))}
      {problem === null ? null : (
        <p class="text-error" role="alert">
          {problem.kind === "unreachable" ? texts.unreachable : texts.problem(problem.message, problem.hint)}
        </p>
      )}
      <div class="layout-buttons">
        <Button onClick={() => onClose(false)}>{texts.cancel}</Button>
        <Button kind="main" busy={busy} onClick={() => void trust()}>
          {words.confirm}
        </Button>
      </div>
    </Dialog>
  );
}

function line(title: string, runs: string) {
  return (
    <li key={title}>
      <b dir="auto">{title}</b>
      <code>{runs}</code>
    </li>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren[] }) {
  if (children.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul aria-label={title}>{children}</ul>
    </section>
  );
}
