/** Links with which others read a session. A new link is shown once. */

import { useState } from "preact/hooks";
import * as keryx from "../api/client";
import { asProblem, type Problem } from "../api/problem";
import type { NewShare } from "../api/types";
import { texts } from "../texts";
import { Button } from "../ui/button";
import { Dialog } from "../ui/dialog";
import { Refusal } from "../ui/refusal";
import { useRequest } from "../ui/use_request";
import { ShareLinks } from "./share_links";

const DAYS = [1, 7, 30] as const;

export function ShareDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const words = texts.sharing;
  const links = useRequest(() => keryx.shares(id), [id]);
  const [options, setOptions] = useState<Required<NewShare>>({ days: 7, follow: false, attachments: false });
  const [link, setLink] = useState<string | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const create = async (): Promise<void> => {
    setBusy(true);
    try {
      const { path } = await keryx.share(id, options);
      // The page may be anywhere below its host.
      setLink(new URL(path.slice(1), document.baseURI).href);
      setProblem(null);
      links.again();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <Dialog title={words.title} onClose={onClose}>
      <h2>{words.title}</h2>
      <p class="text-dim">{words.lead}</p>
      <Options options={options} onChange={setOptions} />
      <Button kind="main" busy={busy} onClick={() => void create()}>
        {words.create}
      </Button>
      {problem === null ? null : <Refusal problem={problem} />}
      {link === null ? null : <NewLink key={link} link={link} />}
      <h3>{words.list}</h3>
      {links.problem === null ? null : <Refusal problem={links.problem} />}
      {links.value === null ? null : <ShareLinks links={links.value.shares} onChange={links.again} />}
      <div class="layout-buttons">
        <Button onClick={onClose}>{texts.close}</Button>
      </div>
    </Dialog>
  );
}

interface OptionsProps {
  options: Required<NewShare>;
  onChange: (options: Required<NewShare>) => void;
}

function Options({ options, onChange }: OptionsProps) {
  const words = texts.sharing;
  return (
    <div class="fields session-dialogs-options">
      <label>
        <span>{words.expires}</span>
        <select
          value={options.days ?? "never"}
          onChange={(event) => {
            const days = DAYS.find((count) => String(count) === event.currentTarget.value) ?? null;
            onChange({ ...options, days });
          }}
        >
          {DAYS.map((days) => (
            <option key={days} value={days}>
              {words.days[days]}
            </option>
          ))}
          <option value="never">{words.days.never}</option>
        </select>
      </label>
      <label>
        <span>{words.shows}</span>
        <select
          value={String(options.follow)}
          onChange={(event) => onChange({ ...options, follow: event.currentTarget.value === "true" })}
        >
          <option value="false">{words.upToNow}</option>
          <option value="true">{words.follows}</option>
        </select>
      </label>
      <label class="fields-check">
        <input
          type="checkbox"
          checked={options.attachments}
          onChange={(event) => onChange({ ...options, attachments: event.currentTarget.checked })}
        />
        <span>{words.attachments}</span>
      </label>
    </div>
  );
}

function NewLink({ link }: { link: string }) {
  const words = texts.sharing;
  const [copied, setCopied] = useState(false);
  const copy = (): void => void navigator.clipboard?.writeText(link).then(() => setCopied(true));
  return (
    <div class="session-dialogs-new" role="status">
      <p>{words.once}</p>
      <div class="session-dialogs-line">
        <input readOnly aria-label={words.link} value={link} onFocus={(event) => event.currentTarget.select()} />
        <Button onClick={copy}>{copied ? words.copied : words.copy}</Button>
      </div>
    </div>
  );
}
