/**
 * Texts that are typed elsewhere than in the message box: an edited message, a queued one, an answer. Each
 * is kept in this tab until the server has it or the person gives it up, whether its field is on the screen
 * or not. It refuses to know what becomes of a text that nothing is open for any more.
 */

import { type Signal, signal } from "@preact/signals";

/** Forgotten with all drafts, at logout. */
const PREFIX = "keryx.unsaved.texts.";

/** What a text is for. */
export const textName = {
  edited: (turnId: string): string => `edited ${turnId}`,
  queued: (messageId: string): string => `queued ${messageId}`,
  answer: (questionId: string): string => `answer ${questionId}`,
};

export class UnsavedTexts {
  private readonly texts: Signal<ReadonlyMap<string, string>>;
  private readonly sending = signal<ReadonlySet<string>>(new Set());

  constructor(private readonly key: string) {
    this.texts = signal(read(key));
  }

  get(name: string): string | undefined {
    return this.texts.value.get(name);
  }

  isSending(name: string): boolean {
    return this.sending.value.has(name);
  }

  put(name: string, text: string): void {
    this.set(new Map(this.texts.peek()).set(name, text));
  }

  drop(name: string): void {
    const texts = new Map(this.texts.peek());
    if (texts.delete(name)) this.set(texts);
  }

  /** Drops the text once this is done. It stays if this throws or says that it was not done. */
  async send(name: string, action: () => Promise<unknown>): Promise<boolean> {
    this.sending.value = new Set([...this.sending.peek(), name]);
    try {
      const isDone = (await action()) !== false;
      if (isDone) this.drop(name);
      return isDone;
    } finally {
      this.sending.value = new Set([...this.sending.peek()].filter((other) => other !== name));
    }
  }

  /** Takes out the texts of this kind that nothing is open for. What is on its way may have arrived. */
  takeLeftOver(kind: string, open: ReadonlySet<string>): readonly string[] {
    const names = [...this.texts.value.keys()].filter((name) => name.startsWith(`${kind} `) && !open.has(name));
    const left = names.filter((name) => !this.isSending(name));
    const texts = left.map((name) => this.texts.peek().get(name)!);
    for (const name of left) this.drop(name);
    return texts;
  }

  private set(texts: ReadonlyMap<string, string>): void {
    this.texts.value = texts;
    write(this.key, texts);
  }
}

const sessions = new Map<string, UnsavedTexts>();

export function unsavedTexts(sessionId: string): UnsavedTexts {
  const existing = sessions.get(sessionId);
  if (existing !== undefined) return existing;
  const texts = new UnsavedTexts(PREFIX + sessionId);
  sessions.set(sessionId, texts);
  return texts;
}

/** The session is gone, and with it what was typed in it. */
export function dropUnsavedTexts(sessionId: string): void {
  sessions.delete(sessionId);
  write(PREFIX + sessionId, new Map());
}

function read(key: string): ReadonlyMap<string, string> {
  try {
    return new Map(Object.entries(JSON.parse(sessionStorage.getItem(key) ?? "{}") as Record<string, string>));
  } catch {
    return new Map();
  }
}

function write(key: string, texts: ReadonlyMap<string, string>): void {
  try {
    if (texts.size === 0) sessionStorage.removeItem(key);
    else sessionStorage.setItem(key, JSON.stringify(Object.fromEntries(texts)));
  } catch {
    // Storage may be forbidden or full; then they are there until the page is left.
  }
}
