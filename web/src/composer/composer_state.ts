/** What a person is about to say: typed text and attachments, until the server has accepted it. */

import { computed, signal } from "@preact/signals";
import { newKey } from "../api/ids";
import { asProblem, Problem } from "../api/problem";
import type { AttachedUpload, MessageMode, OutgoingMessage, View } from "../api/types";
import { tooLongProblem } from "../session/message_length";
import { texts } from "../texts";
import { Attachments } from "./attachments";
import { type DraftContent, isSameContent, type UnsavedDraft } from "./unsaved_draft";

const SAVE_AFTER_MS = 700;

export interface PostponedMessage {
  readonly mode: MessageMode;
  readonly wait: boolean;
  readonly text: string;
}

/** A text that was entered. The server has not accepted it yet. */
interface Entered {
  readonly text: string;
  readonly act: (text: string) => void;
  /** Whether it still stands in the message box, behind those that were entered before it. */
  isInBox: boolean;
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
  /** Why words stand here that were typed elsewhere; until the box is edited. */
  readonly note = signal("");
  /** Told when what was typed is on its way. */
  onSent: () => void = () => undefined;
  private restored = false;
  /** What was saved, if it came while something was on its way. */
  private draft: View["draft"] | null = null;
  /** What is on its way, or waits for an upload. */
  private underway: Entered | null = null;
  /** What goes next, in order, once what is on its way has arrived. */
  private held: Entered[] = [];
  /** What came back while something was on its way, or waited for an upload. */
  private readonly returned: { readonly content: DraftContent; readonly note: string }[] = [];
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

  /** How much of the box was entered already: what stands behind it is the next message. */
  private get enteredLength(): number {
    const entered = [...(this.underway === null ? [] : [this.underway]), ...this.held];
    return entered.reduce((sum, { text, isInBox }) => sum + (isInBox ? text.length : 0), 0);
  }

  /** A change of the box begins here. What was entered is sent as it was, and the box is another text. */
  changesFrom(at: number): void {
    if (at >= this.enteredLength) return;
    if (this.postponed.peek() !== null && !this.isBehindPostponed) {
      // Nothing else was entered: the person edits the message that waits.
      this.postponed.value = null;
      this.underway = null;
      return;
    }
    for (const entered of [this.underway, ...this.held]) if (entered !== null) entered.isInBox = false;
  }

  type(text: string): void {
    const before = this.text.peek().slice(0, this.enteredLength);
    if (!text.startsWith(before)) this.changesFrom(0);
    this.text.value = text;
    this.note.value = "";
    if (!this.sending.value) this.problem.value = null;
    if (!this.isBehindPostponed) this.takeBack();
    this.changed();
  }

  /** Takes a file away; a message that waited for it is another one now. */
  detach(key: string): void {
    if (!this.sending.value) this.problem.value = null;
    this.takeBack();
    this.attachments.remove(key);
  }

  /** The message that waits for an upload, and what was entered behind it, are not sent by themselves any more. */
  takeBack(): void {
    if (this.postponed.value !== null) {
      this.postponed.value = null;
      this.giveBack();
    }
    this.takeDraft();
  }

  /** Whether a message waits for an upload, and the box has other texts than this one. */
  private get isBehindPostponed(): boolean {
    return this.postponed.peek() !== null && (this.underway?.isInBox === false || this.held.length > 0);
  }

  /** Does this with the text as it is now: at once, or when what was entered before has arrived. */
  enter(act: (text: string) => void): void {
    if (!this.sending.value && !this.isBehindPostponed) {
      this.underway = null;
      return act(this.text.value);
    }
    const text = this.text.value.slice(this.enteredLength);
    if (text.trim() !== "") this.held.push({ text, act, isInBox: true });
  }

  /** Sends it; the text stays until the server has it, and the same again has the same key. */
  async send(mode: MessageMode, wait = false, text = this.text.value): Promise<void> {
    if (this.sending.value || (text.trim() === "" && !this.ready.value)) return;
    this.postponed.value = null;
    if (this.refuseTooLong(text) || this.refuseFailedUploads()) return this.giveBack();
    if (this.attachments.pending.value) {
      this.problem.value = null;
      this.underway ??= this.entered(text);
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

  private entered(text: string): Entered {
    return { text, act: () => undefined, isInBox: this.text.value.startsWith(text) };
  }

  private async tried(text: string, body: string, action: (key: string) => Promise<unknown>): Promise<boolean> {
    if (this.attempt?.body !== body) this.attempt = { body, key: newKey() };
    this.sending.value = true;
    this.underway ??= this.entered(text);
    this.problem.value = null;
    this.note.value = "";
    try {
      await action(this.attempt.key);
      this.attempt = null;
      // What was typed meanwhile is the beginning of the next message; or all of it, if it was typed
      // in place of this one.
      if (this.underway.isInBox) this.text.value = this.text.value.slice(text.length);
      this.underway = null;
      this.onSent();
      return true;
    } catch (error) {
      this.problem.value = asProblem(error);
      this.giveBack();
      return false;
    } finally {
      this.sending.value = false;
    }
  }

  /** Nothing more goes by itself. What was entered and then overwritten stands in the box again, in order. */
  private giveBack(): void {
    const entered = [...(this.underway === null ? [] : [this.underway]), ...this.held];
    this.underway = null;
    this.held = [];
    const overwritten = entered.filter(({ isInBox }) => !isInBox).map(({ text }) => text);
    if (overwritten.length === 0) return;
    this.text.value = [...overwritten, this.text.value].filter(Boolean).join("\n\n");
    this.changed();
  }

  /** What was entered next; what was saved before only after that. */
  private goOn(): void {
    const next = this.held.shift();
    if (next !== undefined) {
      this.underway = next;
      next.act(next.text);
    }
    this.takeDraft();
  }

  /** Words that were said come back, before what is typed already. */
  putBack(content: DraftContent, note = ""): void {
    if (this.sending.peek() || this.postponed.peek() !== null) {
      this.returned.push({ content, note });
      return;
    }
    this.note.value = note;
    this.text.value = [content.text, this.text.value].filter(Boolean).join("\n\n");
    this.attachments.restore(content.attachments);
    this.changed();
  }

  private takeDraft(): void {
    for (const { content, note } of this.returned.splice(0)) this.putBack(content, note);
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
    const problem = tooLongProblem(text, texts.composer.tooLongHint);
    if (problem !== null) this.problem.value = problem;
    return problem !== null;
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
