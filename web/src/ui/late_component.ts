/** Components with code of their own, which comes when they are first shown, or before when there is time. */

import { signal } from "@preact/signals";
import type { ComponentType } from "preact";
import { attempt } from "./notice";

export class LateComponent<Props> {
  private readonly component = signal<ComponentType<Props> | null>(null);

  constructor(private readonly load: () => Promise<ComponentType<Props>>) {}

  /** Null until its code has come. */
  get value(): ComponentType<Props> | null {
    return this.component.value;
  }

  /** A person waits for it: false if it cannot be fetched, which is shown. */
  async fetch(): Promise<boolean> {
    return this.component.peek() !== null || attempt(() => this.get());
  }

  /** Nobody waits for it; what cannot be fetched now is fetched when it is needed. */
  prefetch(): void {
    if (this.component.peek() === null) void this.get().catch(() => undefined);
  }

  private async get(): Promise<void> {
    this.component.value = await this.load();
  }
}
