import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import {
  CHECK_MS,
  ConnectionSlot,
  LONG_TURN_MS,
  PATIENCE_MS,
  SLOTS,
  type SlotLocks,
  TURN_MS,
} from "../src/api/connection_slots";
import { Locks } from "./locks";

class Reader {
  sits = false;
  turns = 0;
  atWork = false;
  readonly seat: ConnectionSlot;

  constructor(locks: Locks) {
    const hall: SlotLocks = {
      lock: (name, options, seated) => locks.request(name, options, seated),
      pendingNames: () => Promise.resolve(locks.pending),
      isAtWork: () => this.atWork,
    };
    const sit = (): void => {
      expect(this.sits).toBe(false);
      this.sits = true;
      this.turns += 1;
    };
    const rise = (): void => void (this.sits = false);
    this.seat = new ConnectionSlot(sit, rise, hall);
  }
}

describe("seats", () => {
  let readers: Reader[] = [];
  const sitting = (): number => readers.filter((reader) => reader.sits).length;
  const open = async (count: number): Promise<void> => {
    const locks = new Locks();
    readers = Array.from({ length: count }, () => new Reader(locks));
    for (const reader of readers) reader.seat.take();
    await pass(0);
  };
  const pass = (milliseconds: number): Promise<unknown> => vi.advanceTimersByTimeAsync(milliseconds);
  beforeEach(() => void vi.useFakeTimers());
  afterEach(async () => {
    for (const reader of readers) reader.seat.leave();
    await pass(PATIENCE_MS);
    vi.useRealTimers();
  });

  it("are kept while nobody waits for them", async () => {
    await open(SLOTS);
    await pass(60_000);
    expect(readers.map(({ sits, turns }) => [sits, turns])).toEqual(readers.map(() => [true, 1]));
  });

  it("are never more than there are, and everybody has a turn again and again", async () => {
    await open(SLOTS + 3);
    for (let time = 0; time < 120_000; time += CHECK_MS) {
      expect(sitting()).toBeLessThanOrEqual(SLOTS);
      await pass(CHECK_MS);
    }
    expect(Math.min(...readers.map((reader) => reader.turns))).toBeGreaterThan(5);
  });

  it("are left at once, and another sits down", async () => {
    await open(SLOTS + 1);
    readers[0]!.seat.leave();
    expect(readers[0]!.sits).toBe(false);
    await pass(TURN_MS + PATIENCE_MS);
    expect([readers[SLOTS]!.sits, sitting()]).toEqual([true, SLOTS]);
  });

  it("can be left and taken again in one breath", async () => {
    await open(1);
    readers[0]!.seat.leave();
    readers[0]!.seat.take();
    await pass(CHECK_MS);
    expect([readers[0]!.sits, readers[0]!.turns]).toEqual([true, 2]);
  });

  it("are held longer where the person is at work", async () => {
    await open(SLOTS + 1);
    for (const reader of readers.slice(0, SLOTS)) reader.atWork = true;
    await pass(LONG_TURN_MS - CHECK_MS);
    expect(readers[SLOTS]!.turns).toBe(0);
    await pass(PATIENCE_MS + 2 * CHECK_MS);
    expect(readers[SLOTS]!.turns).toBeGreaterThan(0);
  });
});
