/**
 * A few tabs follow their sessions at once; if more are looked at, side by side, they take turns.
 *
 * Browsers allow six connections to one server over HTTP/1.1, and whoever wants more waits without
 * end. So there are few slots, each a lock that all tabs of a browser see. Who holds one gives it
 * up after a while if somebody waits for it, and a stream that goes on later misses nothing.
 */

/** With the stream that all tabs share, this leaves a connection for everything else. */
export const SLOTS = 4;
export const CHECK_MS = 1_000;
/** How long one holds a slot while others wait; longer where the person is at work. */
export const TURN_MS = 2_000;
export const LONG_TURN_MS = 8_000;
/** How long one waits for the same slot: who holds it may be at work. */
export const PATIENCE_MS = 3_000;

type Options = { ifAvailable?: true; signal?: AbortSignal };

/** What a browser offers for this, as far as it is used. */
export interface SlotLocks {
  /** What `whenHeld` answers; it is told whether the lock is there. */
  readonly lock: (name: string, options: Options, whenHeld: (got: boolean) => Promise<boolean>) => Promise<boolean>;
  /** The names of the locks that somebody waits for. */
  readonly pendingNames: () => Promise<readonly string[]>;
  readonly isAtWork: () => boolean;
}

export function browserLocks(): SlotLocks | null {
  if (!("locks" in (globalThis.navigator ?? {}))) return null;
  return {
    lock: (name, options, whenHeld) => navigator.locks.request(name, options, (lock) => whenHeld(lock !== null)),
    pendingNames: async () => (await navigator.locks.query()).pending?.map((lock) => lock.name ?? "") ?? [],
    isAtWork: () => document.hasFocus(),
  };
}

export class ConnectionSlot {
  private leaving: AbortController | null = null;
  private held = false;

  constructor(
    private readonly open: () => void,
    private readonly close: () => void,
    private readonly locks: SlotLocks,
  ) {}

  /** Connects as soon as a slot is free, and again after others had their turn. */
  take(): void {
    if (this.leaving !== null) return;
    this.leaving = new AbortController();
    void this.takeTurns(this.leaving.signal);
  }

  leave(): void {
    this.leaving?.abort();
    this.leaving = null;
    this.release();
  }

  private release(): void {
    if (this.held) this.close();
    this.held = false;
  }

  private async takeTurns(left: AbortSignal): Promise<void> {
    for (let at = Math.floor(Math.random() * SLOTS); !left.aborted; at++) {
      if (!(await this.takeFree(left))) await this.waitFor(nameOf(at % SLOTS), left);
    }
  }

  private async takeFree(left: AbortSignal): Promise<boolean> {
    for (let at = 0; at < SLOTS && !left.aborted; at++) {
      const name = nameOf(at);
      if (await this.locks.lock(name, { ifAvailable: true }, (got) => this.stay(name, got, left))) return true;
    }
    return false;
  }

  private async waitFor(name: string, left: AbortSignal): Promise<void> {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), PATIENCE_MS);
    const give = (): void => patience.abort();
    left.addEventListener("abort", give);
    const whenHeld = (got: boolean): Promise<boolean> => {
      clearTimeout(timer);
      return this.stay(name, got, left);
    };
    await this.locks.lock(name, { signal: patience.signal }, whenHeld).catch(() => false);
    clearTimeout(timer);
    left.removeEventListener("abort", give);
  }

  private async stay(name: string, got: boolean, left: AbortSignal): Promise<boolean> {
    if (!got || left.aborted) return got;
    this.held = true;
    this.open();
    for (let held = 0; !left.aborted; held += CHECK_MS) {
      const turn = this.locks.isAtWork() ? LONG_TURN_MS : TURN_MS;
      if (held >= turn && (await this.locks.pendingNames()).includes(name)) break;
      await pause(CHECK_MS, left);
    }
    // Who left may hold another slot by now.
    if (!left.aborted) this.release();
    return true;
  }
}

const nameOf = (at: number): string => `keryx.slot.${at}`;

function pause(milliseconds: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const over = (): void => {
      clearTimeout(timer);
      ended.removeEventListener("abort", over);
      resolve();
    };
    const timer = setTimeout(over, milliseconds);
    ended.addEventListener("abort", over);
  });
}
