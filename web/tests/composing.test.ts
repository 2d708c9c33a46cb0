import { beforeEach, expect, it, vi } from "vitest";
import { Problem } from "../src/api/problem";
import type { Outgoing } from "../src/api/shapes";
import { Composing } from "../src/state/composing";

class Door {
  readonly tried: Outgoing[] = [];
  /** What happens to each message that comes. */
  answer: () => Promise<void> = async () => undefined;
  readonly composing = new Composing(async (message) => {
    this.tried.push(message);
    await this.answer();
  }, null);
}

const fails = async (): Promise<void> => {
  throw new Problem("unreachable", 0, "away");
};

let door = new Door();
beforeEach(() => {
  door = new Door();
});

it("keeps the text until the server has it, and sends it again under the same key", async () => {
  const { composing } = door;
  composing.type("hello");
  door.answer = fails;
  await composing.send("queue");
  expect(composing.text.value).toBe("hello");
  expect(composing.problem.value?.kind).toBe("unreachable");
  door.answer = async () => undefined;
  await composing.send("queue");
  expect(door.tried.map((each) => each.key)).toEqual([door.tried[0]!.key, door.tried[0]!.key]);
  expect([composing.text.value, composing.problem.value]).toEqual(["", null]);
});

it("gives another message another key", async () => {
  const { composing } = door;
  door.answer = fails;
  composing.type("hello");
  await composing.send("queue");
  composing.type("hello there");
  await composing.send("queue");
  await composing.send("steer");
  door.answer = async () => undefined;
  await composing.send("queue");
  composing.type("hello there");
  await composing.send("queue");
  expect(new Set(door.tried.map((each) => each.key)).size).toBe(5);
});

it("leaves what was typed while the message was on its way", async () => {
  const { composing } = door;
  composing.type("first");
  door.answer = async () => composing.type("first, and second");
  await composing.send("queue");
  expect(composing.text.value).toBe(", and second");
});

it("sends nothing while there is nothing, or while it is sending", async () => {
  const { composing } = door;
  await composing.send("queue");
  composing.type("  \n");
  await composing.send("queue");
  expect(door.tried).toEqual([]);
  composing.type("once");
  await Promise.all([composing.send("queue"), composing.send("queue")]);
  expect(door.tried).toHaveLength(1);
});

it("sends what is entered while a message is on its way when that has arrived, each by itself", async () => {
  const { composing } = door;
  const enter = (): void => composing.enter((text) => void composing.send("queue", false, text));
  door.answer = () => new Promise((resolve) => setTimeout(resolve));
  composing.attachments.restore([{ type: "file", blob: "b1", media_type: "text/plain", name: "notes.txt" }]);
  let typed = "";
  for (const words of ["one", "two", "three"]) {
    composing.type((typed += words));
    enter();
  }
  enter();
  composing.type(`${typed}four`);
  await vi.waitFor(() => expect(composing.text.value).toBe("four"));
  expect(door.tried.map((each) => [each.text, each.attachments?.length])).toEqual([["one", 1], ["two", 0], ["three", 0]]);
  expect(composing.sending.value).toBe(false);
});

it("sends nothing more by itself after a failure", async () => {
  const { composing } = door;
  door.answer = fails;
  composing.type("one");
  const sent = composing.send("queue");
  composing.type("onetwo");
  composing.enter((text) => void composing.send("queue", false, text));
  await sent;
  expect([door.tried.length, composing.text.value]).toEqual([1, "onetwo"]);
});

it("puts a saved draft before what was typed until it was known, and saves nothing over it", async () => {
  vi.useFakeTimers();
  const saved: string[] = [];
  const composing = new Composing(
    async () => undefined,
    async (text) => void saved.push(text),
  );
  composing.type("typed");
  await composing.flush();
  await vi.runAllTimersAsync();
  expect(saved).toEqual([]);
  composing.restore({ text: "saved, " });
  expect(composing.text.value).toBe("saved, typed");
  await vi.runAllTimersAsync();
  expect(saved).toEqual(["saved, typed"]);
  vi.useRealTimers();
});

it("restores a draft that comes while a message is on its way when that has arrived", async () => {
  const { composing } = door;
  composing.type("sent");
  door.answer = async () => {
    composing.restore({ text: "saved, " });
    composing.type("sent and more");
  };
  await composing.send("queue");
  expect(composing.text.value).toBe("saved,  and more");
});

it("restores a saved draft, but not over what was typed", () => {
  const { composing } = door;
  const attachments = [{ type: "file" as const, blob: "b1", media_type: "text/plain", name: "notes.txt" }];
  composing.restore({ text: "saved", attachments });
  expect(composing.text.value).toBe("saved");
  expect(composing.attachments.uploaded.value).toEqual([
    { upload_id: "b1", name: "notes.txt", media_type: "text/plain" },
  ]);
  composing.type("mine");
  composing.restore({ text: "older" });
  expect(composing.text.value).toBe("mine");
});
