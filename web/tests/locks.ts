/** The locks of a browser, as all its tabs see them: holders, lines, and those who take by force. */

interface Options {
  ifAvailable?: true;
  steal?: true;
  signal?: AbortSignal;
}

interface Waiting {
  readonly enter: () => void;
  readonly signal: AbortSignal | undefined;
}

export class Locks {
  /** By name: how to tell the holder that it is one no more. */
  private readonly held = new Map<string, (error: Error) => void>();
  private readonly lines = new Map<string, Waiting[]>();

  get pending(): readonly string[] {
    return [...this.lines].flatMap(([name, line]) =>
      line.filter((waiting) => !waiting.signal?.aborted).map(() => name),
    );
  }

  request<T>(name: string, options: Options, granted: (got: boolean) => Promise<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const enter = (): void => {
        this.held.set(name, reject);
        const over = (): void => {
          if (this.held.get(name) === reject) this.next(name);
        };
        void Promise.resolve(true).then(granted).then(resolve, reject).then(over);
      };
      const { ifAvailable, steal, signal } = options;
      signal?.addEventListener("abort", () => reject(new DOMException("", "AbortError")));
      if (steal) this.held.get(name)?.(new DOMException("", "AbortError"));
      if (steal || !this.held.has(name)) enter();
      else if (ifAvailable) void granted(false).then(resolve, reject);
      else this.lines.set(name, [...(this.lines.get(name) ?? []), { enter, signal }]);
    });
  }

  private next(name: string): void {
    this.held.delete(name);
    const line = this.lines.get(name) ?? [];
    const next = line.shift();
    if (next === undefined) return;
    if (next.signal?.aborted) this.next(name);
    else next.enter();
  }
}
