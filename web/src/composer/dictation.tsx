/** Dictation: what a person says becomes text in the message box, where the browser can hear. */

import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api/problem";
import { texts } from "../texts";
import { Button } from "../ui/button";
import type { ComposerState } from "./composer_state";

interface Heard {
  readonly results: ArrayLike<ArrayLike<{ readonly transcript: string }>>;
}

/** What the page uses of the browser's recognition, which has no types of its own yet. */
interface Recognition {
  continuous: boolean;
  interimResults: boolean;
  lang: string;
  onresult: ((event: Heard) => void) | null;
  onend: (() => void) | null;
  onerror: ((event: { readonly error: string }) => void) | null;
  start: () => void;
  stop: () => void;
}

type RecognitionMaker = new () => Recognition;

const makers = globalThis as unknown as {
  SpeechRecognition?: RecognitionMaker;
  webkitSpeechRecognition?: RecognitionMaker;
};

export function Dictation({ composing, running }: { composing: ComposerState; running: boolean }) {
  const [isOn, setOn] = useState(false);
  const recognition = useRef<Recognition | null>(null);
  useEffect(() => () => recognition.current?.stop(), [composing]);
  const Maker = makers.SpeechRecognition ?? makers.webkitSpeechRecognition;
  if (Maker === undefined) return null;
  const start = (): void => {
    const hearing = new Maker();
    const before = composing.text.peek();
    hearing.continuous = true;
    hearing.interimResults = true;
    hearing.lang = navigator.language;
    hearing.onresult = ({ results }) => {
      const words = Array.from(results, (result) => result[0]?.transcript ?? "").join("");
      composing.type(before === "" || /\s$/.test(before) ? before + words : `${before} ${words}`);
    };
    hearing.onerror = ({ error }) => {
      if (error === "aborted" || error === "no-speech") return;
      composing.problem.value = new Problem("refused", 0, texts.composer.notHeard, texts.composer.notHeardHint);
    };
    hearing.onend = () => setOn(false);
    recognition.current = hearing;
    hearing.start();
    setOn(true);
  };
  return (
    <span class={running ? "composer-dictation is-running" : "composer-dictation"}>
      <Button pressed={isOn} onClick={() => (isOn ? recognition.current?.stop() : start())}>
        {isOn ? texts.composer.stopDictation : texts.composer.dictate}
      </Button>
    </span>
  );
}
