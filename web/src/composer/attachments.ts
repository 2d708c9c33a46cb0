/** Files that go with a message: uploaded as soon as they are chosen. */

import { computed, signal } from "@preact/signals";
import * as keryx from "../api/client";
import { newKey } from "../api/ids";
import { asProblem, type Problem } from "../api/problem";
import type { AttachedUpload } from "../api/types";
import { texts } from "../texts";

export interface AttachedFile {
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

function attaching({ uploadId, name, mediaType }: AttachedFile): AttachedUpload[] {
  return uploadId === null ? [] : [{ upload_id: uploadId, name, media_type: mediaType }];
}

export class Attachments {
  readonly list = signal<readonly AttachedFile[]>([]);
  readonly pending = computed(() =>
    this.list.value.some((attachment) => attachment.uploadId === null && attachment.problem === null),
  );
  readonly failed = computed(() => this.list.value.filter((attachment) => attachment.problem !== null));
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
    this.forget((attachment) => attachment.key === key);
    this.changed();
  }

  /** They are sent; what was added meanwhile stays. */
  drop(sent: readonly AttachedUpload[]): void {
    const ids = new Set(sent.map((attachment) => attachment.upload_id));
    this.forget((attachment) => attachment.uploadId !== null && ids.has(attachment.uploadId));
  }

  restore(saved: readonly AttachedUpload[]): void {
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
    const description = {
      key,
      name: file.name || texts.composer.pastedName,
      mediaType: file.type || UNKNOWN_TYPE,
      size: file.size,
      preview,
    };
    this.list.value = [...this.list.value, { ...description, uploadId: null, problem: null }];
    try {
      const { upload_id } = await keryx.upload(file, description.name, abort.signal);
      this.change(key, { uploadId: upload_id });
      this.changed();
    } catch (error) {
      if (!abort.signal.aborted) this.change(key, { problem: asProblem(error) });
    } finally {
      this.uploads.delete(key);
      if (!abort.signal.aborted) this.settled();
    }
  }

  private change(key: string, changes: Partial<AttachedFile>): void {
    this.list.value = this.list.value.map((attachment) =>
      attachment.key === key ? { ...attachment, ...changes } : attachment,
    );
  }

  private forget(gone: (attachment: AttachedFile) => boolean): void {
    for (const attachment of this.list.value)
      if (gone(attachment) && attachment.preview !== null) URL.revokeObjectURL(attachment.preview);
    this.list.value = this.list.value.filter((attachment) => !gone(attachment));
  }
}
