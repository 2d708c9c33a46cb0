/** A block of code: plain while it grows, coloured once it is whole, with a button to copy it. */

import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { texts } from "../texts";
import { whenIdle } from "./idle";
import { clean } from "./markdown/clean";

/** Longer code stays plain: colouring it would cost a frame. */
const MOST_COLOURED = 20_000;
const MOST_KEPT = 300;
const COPIED_MS = 1_500;

const coloured = new Map<string, string>();

async function colour(text: string, language: string): Promise<string | null> {
  const key = `${language}\n${text}`;
  const cached = coloured.get(key);
  if (cached !== undefined) return cached;
  const { highlight } = await import("./highlight");
  const html = highlight(text, language);
  if (html === null) return null;
  const cleaned = clean(html);
  coloured.set(key, cleaned);
  if (coloured.size > MOST_KEPT) coloured.delete(coloured.keys().next().value!);
  return cleaned;
}

interface Props {
  text: string;
  language: string;
  growing?: boolean;
  /** What it is, if there is more to say than its language. */
  title?: string;
  /** More buttons, before the one that copies. */
  children?: ComponentChildren;
}

export function Code({ text, language, growing = false, title, children }: Props) {
  const html = useColour(text, language, growing);
  return (
    <figure class="code">
      <figcaption>
        <span dir="auto">{title ?? language}</span>
        <span class="code-tools">
          {children}
          <Copy text={text} />
        </span>
      </figcaption>
      <pre tabIndex={0} dir="ltr" aria-label={texts.code.label(language)}>
        {html === null ? <code>{text}</code> : <code dangerouslySetInnerHTML={{ __html: html }} />}
      </pre>
    </figure>
  );
}

function useColour(text: string, language: string, growing: boolean): string | null {
  const [html, setHtml] = useState(() => coloured.get(`${language}\n${text}`) ?? null);
  useEffect(() => {
    let mounted = true;
    if (growing || language === "" || text.length > MOST_COLOURED) return setHtml(null);
    // What only passes by while somebody scrolls need not be coloured.
    const callOff = whenIdle(
      () =>
        void colour(text, language).then(
          (done) => mounted && setHtml(done),
          () => undefined,
        ),
    );
    return () => {
      mounted = false;
      callOff();
    };
  }, [text, language, growing]);
  return growing ? null : html;
}

/** A text that is made when it is copied may be given as a function. */
export function Copy({ text, label }: { text: string | (() => string); label?: string }) {
  const [copied, setCopied] = useState(false);
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(typeof text === "string" ? text : text());
    setCopied(true);
    setTimeout(() => setCopied(false), COPIED_MS);
  };
  // Pages that are not served securely have no clipboard.
  if (!navigator.clipboard) return null;
  return (
    <button type="button" class="button-quiet" onClick={() => void copy()}>
      {copied ? texts.code.copied : (label ?? texts.code.copy)}
    </button>
  );
}
