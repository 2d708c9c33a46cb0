/**
 * A few tabs follow their sessions at once; if more are looked at, side by side, they take turns.
 *
 * Browsers allow six connections to one server over HTTP/1.1, and whoever wants more waits without
 * end. So there are few seats, each a lock that all tabs of a browser see. Who sits gives up the
 * seat after a while if somebody waits for it, and a stream that goes on later misses nothing.
 */

/** With the stream that all tabs share, this leaves a connection for everything else. */
export const SEATS = 4;
export const CHECK_MS = 1_000;
/** How long one sits while others wait; longer where the person is at work. */
export const TURN_MS = 2_000;
export const LONG_TURN_MS = 8_000;
/** How long one waits for the same seat: who sits there may be at work. */
export const PATIENCE_MS = 3_000;

type Options = { ifAvailable?: true; signal?: AbortSignal };

/** What a browser offers for this, as far as it is used. */
export interface Hall {
  /** What `seated` answers; it is told whether the lock is there. */
  readonly lock: (name: string, options: Options, seated: (got: boolean) => Promise<boolean>) => Promise<boolean>;
  /** The names of the locks that somebody waits for. */
  readonly wanted: () => Promise<readonly string[]>;
  readonly isAtWork: () => boolean;
}

export function hall(): Hall | null {
  if (!("locks" in (globalThis.navigator ?? {}))) return null;
  return {
    lock: (name, options, seated) => navigator.locks.request(name, options, (lock) => seated(lock !== null)),
    wanted: async () => (await navigator.locks.query()).pending?.map((each) => each.name ?? "") ?? [],
    isAtWork: () => document.hasFocus(),
  };
}

export class Seat {
  private leaving: AbortController | null = null;
  private seated = false;

  constructor(
    private readonly sit: () => void,
    private readonly rise: () => void,
    private readonly around: Hall,
  ) {}

  /** Sits down as soon as there is room, and again after others had their turn. */
  take(): void {
    if (this.leaving !== null) return;
    this.leaving = new AbortController();
    void this.takeTurns(this.leaving.signal);
  }

  leave(): void {
    this.leaving?.abort();
    this.leaving = null;
    this.getUp();
  }

  private getUp(): void {
    if (this.seated) this.rise();
    this.seated = false;
  }

  private async takeTurns(left: AbortSignal): Promise<void> {
    for (let at = Math.floor(Math.random() * SEATS); !left.aborted; at++) {
      if (!(await this.takeFree(left))) await this.waitFor(nameOf(at % SEATS), left);
    }
  }

  private async takeFree(left: AbortSignal): Promise<boolean> {
    for (let at = 0; at < SEATS && !left.aborted; at++) {
      const name = nameOf(at);
      if (await this.around.lock(name, { ifAvailable: true }, (got) => this.stay(name, got, left))) return true;
    }
    return false;
  }

  private async waitFor(name: string, left: AbortSignal): Promise<void> {
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), PATIENCE_MS);
    const give = (): void => patience.abort();
    left.addEventListener("abort", give);
    const seated = (got: boolean): Promise<boolean> => {
      clearTimeout(timer);
      return this.stay(name, got, left);
    };
    await this.around.lock(name, { signal: patience.signal }, seated).catch(() => false);
    clearTimeout(timer);
    left.removeEventListener("abort", give);
  }

  private async stay(name: string, got: boolean, left: AbortSignal): Promise<boolean> {
    if (!got || left.aborted) return got;
    this.seated = true;
    this.sit();
    for (let sat = 0; !left.aborted; sat += CHECK_MS) {
      const turn = this.around.isAtWork() ? LONG_TURN_MS : TURN_MS;
      if (sat >= turn && (await this.around.wanted()).includes(name)) break;
      await pause(CHECK_MS, left);
    }
    // Who left may sit elsewhere by now.
    if (!left.aborted) this.getUp();
    return true;
  }
}

const nameOf = (at: number): string => `keryx.seat.${at}`;

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
