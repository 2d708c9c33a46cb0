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
  private attempt: { body: string; key: string } | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly deliver: (message: Outgoing) => Promise<void>,
    private readonly save: ((text: string, attachments: readonly Attaching[]) => Promise<void>) | null,
  ) {}

  /** What was saved, unless something was typed here before. */
  restore(draft: View["draft"]): void {
    if (this.restored || this.text.value !== "") return;
    this.restored = true;
    this.text.value = draft.text;
    this.attachments.restore(draft.attachments ?? []);
  }

  type(text: string): void {
    this.text.value = text;
    if (!this.sending.value) this.problem.value = null;
    this.changed();
  }

  /** Sends it; the text stays until the server has it, and the same again has the same key. */
  async send(mode: Mode, wait = false): Promise<void> {
    if (!this.ready.value) return;
    const sent = this.attachments.uploaded.value;
    const content = { text: this.text.value, mode, attachments: [...sent], ...(wait ? { wait } : {}) };
    const done = await this.tried(JSON.stringify(content), (key) => this.deliver({ ...content, key }));
    if (!done) return;
    this.attachments.drop(sent);
    this.changed();
  }

  /** Does what the text says, in place of sending it; files wait for the next message. */
  async run(action: (key: string) => Promise<unknown>): Promise<void> {
    if (this.sending.value) return;
    if (await this.tried(`run ${this.text.value}`, action)) this.changed();
  }

  private async tried(body: string, action: (key: string) => Promise<unknown>): Promise<boolean> {
    const text = this.text.value;
    if (this.attempt?.body !== body) this.attempt = { body, key: newKey() };
    this.sending.value = true;
    this.problem.value = null;
    try {
      await action(this.attempt.key);
      this.attempt = null;
      // What was typed meanwhile is the beginning of the next message.
      if (this.text.value.startsWith(text)) this.text.value = this.text.value.slice(text.length);
      this.onSent();
      return true;
    } catch (error) {
      this.problem.value = asProblem(error);
      return false;
    } finally {
      this.sending.value = false;
    }
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
    this.restored = true;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush(), SAVE_AFTER_MS);
  }

  /** Saves what is not saved yet. A draft that cannot be saved is still on the screen. */
  async flush(): Promise<void> {
    if (this.timer === null || this.save === null) return;
    clearTimeout(this.timer);
    this.timer = null;
    await this.save(this.text.value, this.attachments.uploaded.value).catch(() => undefined);
  }
}
