/** What a person is about to say: typed text and attachments, until the server has accepted it. */

import { computed, signal } from "@preact/signals";
import { newKey } from "../api/ids";
import { asProblem, Problem } from "../api/problem";
import type { AttachedUpload, MessageMode, OutgoingMessage, View } from "../api/types";
import { texts } from "../texts";
import { Attachments } from "./attachments";
import { type DraftContent, isSameContent, type UnsavedDraft } from "./unsaved_draft";

const SAVE_AFTER_MS = 700;
/** Characters of a message; the server takes no more. */
export const LONGEST_MESSAGE = 1_000_000;

export interface PostponedMessage {
  readonly mode: MessageMode;
  readonly wait: boolean;
  readonly text: string;
}

export class ComposerState {
  readonly text = signal("");
  readonly attachments = new Attachments(
    () => this.changed(),
    () => this.onUploadEnded(),
  );
  readonly sending = signal(false);
  readonly problem = signal<Problem | null>(null);
  readonly ready = computed(
    () =>
      !this.sending.value &&
      (this.text.value.trim() !== "" || this.attachments.uploaded.value.length > 0 || this.attachments.pending.value),
  );
  /** A message that was entered while a file was still uploading: it is sent when the upload is done. */
  readonly postponed = signal<PostponedMessage | null>(null);
  /** Told when what was typed is on its way. */
  onSent: () => void = () => undefined;
  private restored = false;
  /** What was saved, if it came while something was on its way. */
  private draft: View["draft"] | null = null;
  /** What is to be done with the text up to some place, once what is on its way has arrived. */
  private held: { text: string; act: (text: string) => void }[] = [];
  /** What came back while something was on its way. */
  private readonly returned: DraftContent[] = [];
  private attempt: { body: string; key: string } | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly deliver: (message: OutgoingMessage) => Promise<void>,
    private readonly save: ((text: string, attachments: readonly AttachedUpload[]) => Promise<void>) | null,
    private readonly unsaved: UnsavedDraft | null = null,
  ) {
    const left = unsaved?.take() ?? null;
    if (left === null) return;
    this.text.value = left.text;
    this.attachments.restore(left.attachments);
  }

  private get content(): DraftContent {
    return { text: this.text.peek(), attachments: this.attachments.uploaded.peek() };
  }

  /**
   * What was saved, once. What was typed before it was known follows it, as if it had been there;
   * what an earlier page made of it and could not save takes its place.
   */
  restore(draft: View["draft"]): void {
    if (this.restored) return;
    // What is sent is told from what is typed meanwhile by being the beginning.
    if (this.sending.peek() || this.postponed.peek() !== null) {
      this.draft = draft;
      return;
    }
    this.restored = true;
    const saved = contentOf(draft);
    if (!this.unsaved?.knows(saved)) this.follow(saved);
    this.unsaved?.follows(saved);
    if (!isSameContent(saved, this.content)) this.changed();
    else this.unsaved?.saved(saved, null);
  }

  /** What is typed stands behind a draft that it does not go on from. */
  private follow(saved: DraftContent): void {
    const typed = this.content;
    if (isSameContent(saved, typed)) return;
    const isApart = this.unsaved?.isBegun === true && saved.text !== "" && typed.text !== "";
    this.text.value = saved.text + (isApart ? "\n" : "") + typed.text;
    const typedIds = new Set(typed.attachments.map((attachment) => attachment.upload_id));
    this.attachments.restore(saved.attachments.filter((attachment) => !typedIds.has(attachment.upload_id)));
  }

  type(text: string): void {
    this.text.value = text;
    if (!this.sending.value) this.problem.value = null;
    this.takeBack();
    this.changed();
  }

  /** Takes a file away; a message that waited for it is another one now. */
  detach(key: string): void {
    if (!this.sending.value) this.problem.value = null;
    this.takeBack();
    this.attachments.remove(key);
  }

  /** The message that waits for an upload is not sent by itself any more. */
  takeBack(): void {
    this.postponed.value = null;
    this.takeDraft();
  }

  /** Does this with the text as it is now: at once, or when what was entered before has arrived. */
  enter(act: (text: string) => void): void {
    const text = this.text.value;
    if (this.sending.value) this.held.push({ text, act });
    else act(text);
  }

  /** Sends it; the text stays until the server has it, and the same again has the same key. */
  async send(mode: MessageMode, wait = false, text = this.text.value): Promise<void> {
    if (!this.ready.value) return;
    this.postponed.value = null;
    if (this.refuseTooLong(text) || this.refuseFailedUploads()) return;
    if (this.attachments.pending.value) {
      this.problem.value = null;
      this.postponed.value = { mode, wait, text };
      return;
    }
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
      // What was typed meanwhile is the beginning of the next message; or all of it, if it was typed
      // in place of this one.
      const rest = (all: string): string => (all.startsWith(text) ? all.slice(text.length) : all);
      this.text.value = rest(this.text.value);
      this.held = this.held.map(({ text: all, act }) => ({ text: rest(all), act }));
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
    this.takeDraft();
  }

  /** Words that were said come back, before what is typed already. */
  putBack(content: DraftContent): void {
    if (this.sending.peek()) {
      this.returned.push(content);
      return;
    }
    this.text.value = [content.text, this.text.value].filter(Boolean).join("\n\n");
    this.attachments.restore(content.attachments);
    this.changed();
  }

  private takeDraft(): void {
    if (!this.sending.peek()) for (const content of this.returned.splice(0)) this.putBack(content);
    if (this.draft !== null) this.restore(this.draft);
  }

  private onUploadEnded(): void {
    const { value } = this.postponed;
    if (value === null) return;
    if (this.refuseFailedUploads()) this.takeBack();
    else if (!this.attachments.pending.value) void this.send(value.mode, value.wait, value.text);
  }

  /** Said before anything is sent, so that no session is opened for it. */
  private refuseTooLong(text: string): boolean {
    const length = [...text].length;
    if (length <= LONGEST_MESSAGE) return false;
    const { tooLong, tooLongHint } = texts.composer;
    this.problem.value = new Problem("too_long", 0, tooLong(length, LONGEST_MESSAGE), tooLongHint);
    return true;
  }

  /** The text becomes a file of the message. */
  attachText(file: File): void {
    this.type("");
    this.attachments.add([file]);
  }

  /** A message is never sent without a file that the person meant to go with it. */
  private refuseFailedUploads(): boolean {
    const [first] = this.attachments.failed.value;
    if (first === undefined) return false;
    this.problem.value = new Problem(
      "refused",
      0,
      texts.composer.notUploaded(first.name),
      texts.composer.notUploadedHint,
    );
    return true;
  }

  get isEmpty(): boolean {
    return this.text.peek() === "" && this.attachments.list.peek().length === 0;
  }

  /** Nothing of it is saved any more: what it was for is gone. */
  abandon(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    this.unsaved?.forget();
  }

  private changed(): void {
    this.unsaved?.put(this.content);
    if (this.save === null) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.flush(), SAVE_AFTER_MS);
  }

  /**
   * Saves what is not saved yet, but not over what is still to be restored. A draft that cannot be
   * saved is still on the screen, and there again when the page is.
   */
  async flush(): Promise<void> {
    if (this.timer === null || this.save === null || !this.restored) return;
    clearTimeout(this.timer);
    this.timer = null;
    const { content } = this;
    this.unsaved?.follows(content);
    this.unsaved?.put(content);
    const isSaved = await this.save(content.text, content.attachments).then(
      () => true,
      () => false,
    );
    if (isSaved) this.unsaved?.saved(content, isSameContent(content, this.content) ? null : this.content);
  }
}

function contentOf({ text, attachments = [] }: View["draft"]): DraftContent {
  const named = attachments.map(({ blob, name, media_type }) => ({ upload_id: blob, name: name || blob, media_type }));
  return { text, attachments: named };
}
