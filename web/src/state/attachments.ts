/** Files that go with a message: uploaded as soon as they are chosen. */

import { computed, signal } from "@preact/signals";
import { newKey } from "../api/ids";
import * as keryx from "../api/keryx";
import { asProblem, type Problem } from "../api/problem";
import type { Attaching } from "../api/shapes";
import { texts } from "../texts";

export interface Attached {
  readonly key: string;
  readonly name: string;
  readonly mediaType: string;
  /** Null if it was saved with a draft, which does not tell. */
  readonly size: number | null;
  readonly uploadId: string | null;
  readonly problem: Problem | null;
  /** An address of the picture in this page's memory. */
  readonly preview: string | null;
}

const UNKNOWN_TYPE = "application/octet-stream";
const PREVIEWED = /^image\/(png|jpeg|gif|webp|avif)$/;

function attaching({ uploadId, name, mediaType }: Attached): Attaching[] {
  return uploadId === null ? [] : [{ upload_id: uploadId, name, media_type: mediaType }];
}

export class Attachments {
  readonly list = signal<readonly Attached[]>([]);
  readonly pending = computed(() => this.list.value.some((each) => each.uploadId === null && each.problem === null));
  readonly failed = computed(() => this.list.value.filter((each) => each.problem !== null));
  readonly uploaded = computed(() => this.list.value.flatMap(attaching));
  private readonly uploads = new Map<string, AbortController>();

  /** `settled` is told when an upload has ended, well or not. */
  constructor(
    private readonly changed: () => void,
    private readonly settled: () => void = () => undefined,
  ) {}

  add(files: Iterable<File>): void {
    for (const file of files) void this.upload(file);
  }

  remove(key: string): void {
    this.uploads.get(key)?.abort();
    this.forget((each) => each.key === key);
    this.changed();
  }

  /** They are sent; what was added meanwhile stays. */
  drop(sent: readonly Attaching[]): void {
    const ids = new Set(sent.map((each) => each.upload_id));
    this.forget((each) => each.uploadId !== null && ids.has(each.uploadId));
  }

  restore(saved: readonly Attaching[]): void {
    const restored = saved.map(({ upload_id, name, media_type }) => ({
      key: newKey(),
      name: name || upload_id,
      mediaType: media_type ?? UNKNOWN_TYPE,
      size: null,
      uploadId: upload_id,
      problem: null,
      preview: null,
    }));
    this.list.value = [...restored, ...this.list.value];
  }

  private async upload(file: File): Promise<void> {
    const key = newKey();
    const abort = new AbortController();
    this.uploads.set(key, abort);
    const preview = PREVIEWED.test(file.type) ? URL.createObjectURL(file) : null;
    const told = { key, name: file.name || texts.composer.pastedName, mediaType: file.type || UNKNOWN_TYPE, size: file.size, preview };
    this.list.value = [...this.list.value, { ...told, uploadId: null, problem: null }];
    try {
      const { upload_id } = await keryx.upload(file, told.name, abort.signal);
      this.change(key, { uploadId: upload_id });
      this.changed();
    } catch (error) {
      if (!abort.signal.aborted) this.change(key, { problem: asProblem(error) });
    } finally {
      this.uploads.delete(key);
      if (!abort.signal.aborted) this.settled();
    }
  }

  private change(key: string, changes: Partial<Attached>): void {
    this.list.value = this.list.value.map((each) => (each.key === key ? { ...each, ...changes } : each));
  }

  private forget(gone: (each: Attached) => boolean): void {
    for (const each of this.list.value) if (gone(each) && each.preview !== null) URL.revokeObjectURL(each.preview);
    this.list.value = this.list.value.filter((each) => !gone(each));
  }
}
