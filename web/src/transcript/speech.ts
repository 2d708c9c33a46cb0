/** Reading a reply aloud, with the voice of the browser, where it has one. */

import { signal } from "@preact/signals";

/** What is read right now, by the turn. */
export const reading = signal<string | null>(null);

export const canRead = typeof window !== "undefined" && "speechSynthesis" in window;

export function readAloud(turnId: string, text: string): void {
  stopReading();
  const words = new SpeechSynthesisUtterance(text);
  const over = (): void => {
    if (reading.peek() === turnId) reading.value = null;
  };
  words.onend = over;
  words.onerror = over;
  reading.value = turnId;
  speechSynthesis.speak(words);
}

export function stopReading(): void {
  reading.value = null;
  speechSynthesis.cancel();
}
