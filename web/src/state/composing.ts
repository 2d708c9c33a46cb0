/** What a person is about to say: typed text and attachments, until the server has accepted it. */

import { computed, signal } from "@preact/signals";
import type { Mode } from "../api/events";
import { newKey } from "../api/ids";
import { asProblem, type Problem } from "../api/problem";
import type { Attaching, Outgoing, View } from "../api/shapes";
import { Attachments } from "./attachments";

const SAVE_AFTER_MS = 700;

export class Composing {
  readonly text = signal("");
  readonly attachments = new Attachments(() => this.changed());
  readonly sending = signal(false);
  readonly problem = signal<Problem | null>(null);
  readonly ready = computed(
    () =>
      !this.sending.value &&
      !this.attachments.pending.value &&
      (this.text.value.trim() !== "" || this.attachments.uploaded.value.length > 0),
  );
  /** Told when what was typed is on its way. */
  onSent: () => void = () => undefined;
  private restored = false;
  /** What was saved, if it came while something was on its way. */
  private draft: View["draft"] | null = null;
  /** What is to be done with the text up to some place, once what is on its way has arrived. */
  private held: { text: string; act: (text: string) => void }[] = [];
  private attempt: { body: string; key: string } | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly deliver: (message: Outgoing) => Promise<void>,
    private readonly save: ((text: string, attachments: readonly Attaching[]) => Promise<void>) | null,
  ) {}

  /** What was saved, once; what was typed before it was known follows it, as if it had been there. */
  restore(draft: View["draft"]): void {
    if (this.restored) return;
    // What is sent is told from what is typed meanwhile by being the beginning.
    if (this.sending.peek()) {
      this.draft = draft;
      return;
    }
    this.restored = true;
    this.text.value = draft.text + this.text.value;
    this.attachments.restore(draft.attachments ?? []);
    if (this.timer !== null) this.changed();
  }

  type(text: string): void {
    this.text.value = text;
    if (!this.sending.value) this.problem.value = null;
    this.changed();
  }

  /** Does this with the text as it is now: at once, or when what was entered before has arrived. */
  enter(act: (text: string) => void): void {
    const text = this.text.value;
    if (this.sending.value) this.held.push({ text, act });
    else act(text);
  }

  /** Sends it; the text stays until the server has it, and the same again has the same key. */
  async send(mode: Mode, wait = false, text = this.text.value): Promise<void> {
    if (!this.ready.value) return;
    const sent = this.attachments.uploaded.value;
    const content = { text, mode, attachments: [...sent], ...(wait ? { wait } : {}) };
    const done = await this.tried(text, JSON.stringify(content), (key) => this.deliver({ ...content, key }));
    if (done) {
      this.attachments.drop(sent);
      this.changed();
    }
    this.goOn();
  }

  /** Does what the text says, in place of sending it; files wait for the next message. */
  async run(action: (key: string) => Promise<unknown>, text = this.text.value): Promise<void> {
    if (this.sending.value) return;
    if (await this.tried(text, `run ${text}`, action)) this.changed();
    this.goOn();
  }

  private async tried(text: string, body: string, action: (key: string) => Promise<unknown>): Promise<boolean> {
    if (this.attempt?.body !== body) this.attempt = { body, key: newKey() };
    this.sending.value = true;
    this.problem.value = null;
    try {
      await action(this.attempt.key);
      this.attempt = null;
      // What was typed meanwhile is the beginning of the next message.
      if (this.text.value.startsWith(text)) this.text.value = this.text.value.slice(text.length);
      this.held = this.held.map(({ text: all, act }) => ({ text: all.slice(text.length), act }));
      this.onSent();
      return true;
    } catch (error) {
      this.problem.value = asProblem(error);
      this.held = [];
      return false;
    } finally {
      this.sending.value = false;
    }
  }

  /** What was entered next, unless it is not there any more; what was saved before only after that. */
  private goOn(): void {
    const next = this.held.shift();
    if (next !== undefined && next.text.trim() !== "" && this.text.value.startsWith(next.text)) next.act(next.text);
    else if (this.held.length > 0) this.goOn();
    if (this.draft !== null) this.restore(this.draft);
  }

  get isEmpty(): boolean {
    return this.text.peek() === "" && this.attachments.list.peek().length === 0;
  }

  /** Nothing of it is saved any more: what it was for is gone. */
  abandon(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }

  private changed(): void {
    if (this.save === null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush(), SAVE_AFTER_MS);
  }

  /**
   * Saves what is not saved yet, but not over what is still to be restored. A draft that cannot be
   * saved is still on the screen.
   */
  async flush(): Promise<void> {
    if (this.timer === null || this.save === null || !this.restored) return;
    clearTimeout(this.timer);
    this.timer = null;
    await this.save(this.text.value, this.attachments.uploaded.value).catch(() => undefined);
  }
}
