import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Problem } from "../src/api/problem";
import type { OutgoingMessage } from "../src/api/types";
import { ComposerState } from "../src/composer/composer_state";
import { UnsavedDraft } from "../src/composer/unsaved_draft";

class Door {
  readonly tried: OutgoingMessage[] = [];
  /** What happens to each message that comes. */
  answer: () => Promise<void> = async () => undefined;
  readonly composing = new ComposerState(async (message) => {
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
  expect(door.tried.map((message) => message.key)).toEqual([door.tried[0]!.key, door.tried[0]!.key]);
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
  expect(new Set(door.tried.map((message) => message.key)).size).toBe(5);
});

it("sends what was entered in place of a message that was on its way", async () => {
  const { composing } = door;
  composing.type("then sing");
  let arrive = (): void => undefined;
  door.answer = () => new Promise((resolve) => (arrive = resolve));
  const first = composing.send("queue");
  // All that stood there was selected and typed over.
  composing.type("then rest");
  composing.enter((text) => void composing.send("queue", false, text));
  door.answer = async () => undefined;
  arrive();
  await first;
  expect(door.tried.map((message) => message.text)).toEqual(["then sing", "then rest"]);
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
  composing.attachments.restore([{ upload_id: "b1", media_type: "text/plain", name: "notes.txt" }]);
  let typed = "";
  for (const words of ["one", "two", "three"]) {
    composing.type((typed += words));
    enter();
  }
  enter();
  composing.type(`${typed}four`);
  await vi.waitFor(() => expect(composing.text.value).toBe("four"));
  expect(door.tried.map((message) => [message.text, message.attachments?.length])).toEqual([
    ["one", 1],
    ["two", 0],
    ["three", 0],
  ]);
  expect(composing.sending.value).toBe(false);
});

it("sends what was entered as it was then, in order, whatever took its place in the box", async () => {
  const { composing } = door;
  door.answer = () => new Promise((resolve) => setTimeout(resolve));
  composing.type("message 1");
  void composing.send("queue");
  for (const text of ["message 10", "something else", "message 100"]) {
    composing.changesFrom(0);
    composing.type(text);
    composing.enter((entered) => void composing.send("queue", false, entered));
  }
  composing.changesFrom("message 100".length);
  composing.type("message 100 and more");
  await vi.waitFor(() => expect(composing.text.value).toBe(" and more"));
  expect(door.tried.map(({ text }) => text)).toEqual(["message 1", "message 10", "something else", "message 100"]);
});

it("gives back what was overwritten if a message before it fails", async () => {
  const { composing } = door;
  composing.type("one");
  door.answer = fails;
  const first = composing.send("queue");
  composing.type("two");
  composing.enter((entered) => void composing.send("queue", false, entered));
  composing.type("three");
  await first;
  expect(door.tried).toHaveLength(1);
  expect(composing.text.value).toBe("one\n\ntwo\n\nthree");
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
  const composing = new ComposerState(
    async () => undefined,
    async (text) => void saved.push(text),
  );
  composing.type("typed");
  await composing.flush();
  await vi.runAllTimersAsync();
  expect(saved).toEqual([]);
  composing.restore({ text: "saved, ", attachments: [] });
  expect(composing.text.value).toBe("saved, typed");
  await vi.runAllTimersAsync();
  expect(saved).toEqual(["saved, typed"]);
  vi.useRealTimers();
});

it("restores a draft that comes while a message is on its way when that has arrived", async () => {
  const { composing } = door;
  composing.type("sent");
  door.answer = async () => {
    composing.restore({ text: "saved, ", attachments: [] });
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
  composing.restore({ text: "older", attachments: [] });
  expect(composing.text.value).toBe("mine");
});

/** Pages of one tab, one after another, that show the same session; and the server that they save to. */
class Tab {
  readonly storage = new Map<string, string>();
  draft = "";
  /** What becomes of a draft that is saved: it arrives and is confirmed, it only arrives, or it gets lost. */
  saving: "confirmed" | "arrives" | "lost" = "confirmed";

  constructor() {
    vi.useFakeTimers();
    vi.stubGlobal("sessionStorage", {
      getItem: (key: string) => this.storage.get(key) ?? null,
      setItem: (key: string, value: string) => void this.storage.set(key, value),
      removeItem: (key: string) => void this.storage.delete(key),
    });
  }

  /** A page that is opened or loaded anew; it knows nothing of the one before. */
  load(): ComposerState {
    const save = async (text: string): Promise<void> => {
      if (this.saving !== "lost") this.draft = text;
      if (this.saving !== "confirmed") await fails();
    };
    return new ComposerState(async () => undefined, save, new UnsavedDraft("s-1"));
  }

  opened(): ComposerState {
    const composing = this.load();
    composing.restore({ text: this.draft, attachments: [] });
    return composing;
  }
}

describe("what is typed and not saved", () => {
  let tab: Tab;
  beforeEach(() => {
    tab = new Tab();
    tab.draft = "saved, ";
  });
  afterEach(() => {
    vi.useRealTimers();
    vi.unstubAllGlobals();
  });

  it("before the draft was known is there for the next page, behind the draft", async () => {
    tab.load().type("typed");
    const next = tab.load();
    expect(next.text.value).toBe("typed");
    next.type("typed in time");
    const last = tab.opened();
    expect(last.text.value).toBe("saved, typed in time");
    await vi.runAllTimersAsync();
    expect([tab.draft, tab.storage.size]).toEqual(["saved, typed in time", 0]);
    expect(tab.opened().text.value).toBe("saved, typed in time");
  });

  it("takes the place of the draft that it went on from", async () => {
    tab.saving = "lost";
    tab.opened().type("saved, and changed");
    await vi.runAllTimersAsync();
    const next = tab.load();
    expect(next.text.value).toBe("saved, and changed");
    next.type("saved, and changed twice");
    next.restore({ text: tab.draft, attachments: [] });
    expect(next.text.value).toBe("saved, and changed twice");
    tab.saving = "confirmed";
    await vi.runAllTimersAsync();
    expect([tab.draft, tab.storage.size]).toEqual(["saved, and changed twice", 0]);
  });

  it("is not doubled if it was saved and nobody heard of it", async () => {
    tab.saving = "arrives";
    const composing = tab.opened();
    composing.type("saved, and changed");
    await vi.runAllTimersAsync();
    composing.type("saved, and changed again");
    expect(tab.draft).toBe("saved, and changed");
    expect(tab.opened().text.value).toBe("saved, and changed again");
    composing.type("saved, and changed");
    expect(tab.opened().text.value).toBe("saved, and changed");
    expect(tab.storage.size).toBe(0);
  });

  it("is not lost to what somebody else saved meanwhile", async () => {
    tab.saving = "lost";
    tab.opened().type("saved, and mine");
    await vi.runAllTimersAsync();
    tab.draft = "saved, and theirs";
    expect(tab.opened().text.value).toBe("saved, and theirs\nsaved, and mine");
  });

  it("is forgotten with the session", () => {
    const composing = tab.opened();
    composing.type("to nobody");
    composing.abandon();
    expect(tab.storage.size).toBe(0);
  });
});

/** The answers of the server to uploads, in the order in which they came. */
let uploads: { done: (id: string) => void; fail: () => void }[] = [];
const file = (name: string): File => new File(["x"], name, { type: "text/plain" });
const uploaded = (): Promise<void> => vi.waitFor(() => expect(door.composing.attachments.pending.value).toBe(false));

function holdUploads(): void {
  uploads = [];
  vi.stubGlobal(
    "fetch",
    () =>
      new Promise((resolve, reject) =>
        uploads.push({
          done: (id) => resolve(Response.json({ upload_id: id, size: 1 })),
          fail: () => reject(new TypeError("gone")),
        }),
      ),
  );
}

describe("a message that is entered while a file is uploading", () => {
  beforeEach(holdUploads);
  afterEach(() => vi.unstubAllGlobals());

  it("is sent when the last upload is done", async () => {
    const { composing } = door;
    composing.attachments.add([file("a.txt"), file("b.txt")]);
    composing.type("look");
    await composing.send("steer", true);
    expect([door.tried.length, composing.postponed.value?.mode]).toEqual([0, "steer"]);
    uploads[0]!.done("u1");
    await vi.waitFor(() => expect(composing.attachments.uploaded.value).toHaveLength(1));
    expect(door.tried).toHaveLength(0);
    uploads[1]!.done("u2");
    await vi.waitFor(() => expect(door.tried).toHaveLength(1));
    expect(door.tried[0]).toMatchObject({ text: "look", mode: "steer", wait: true });
    expect(door.tried[0]!.attachments?.map((attachment) => attachment.upload_id)).toEqual(["u1", "u2"]);
    await vi.waitFor(() => expect([composing.text.value, composing.postponed.value]).toEqual(["", null]));
  });

  it.each([
    ["taken back", () => door.composing.takeBack()],
    ["edited", () => door.composing.type("look here")],
    ["left without a file", () => door.composing.detach(door.composing.attachments.list.value[1]!.key)],
  ])("is not sent once it is %s", async (_, change) => {
    const { composing } = door;
    composing.attachments.add([file("a.txt"), file("b.txt")]);
    composing.type("look");
    await composing.send("queue");
    change();
    for (const [at, upload] of uploads.entries()) upload.done(`u${at}`);
    await uploaded();
    expect([door.tried.length, composing.postponed.value]).toEqual([0, null]);
    await composing.send("queue");
    expect(door.tried).toHaveLength(1);
  });

  it("is another message once it is typed over", async () => {
    const { composing } = door;
    composing.attachments.add([file("a.txt")]);
    composing.type("look");
    await composing.send("queue");
    composing.changesFrom(0);
    composing.type("listen");
    expect([composing.postponed.value, composing.text.value]).toEqual([null, "listen"]);
  });

  it("is followed by what comes back meanwhile", async () => {
    const { composing } = door;
    composing.attachments.add([file("a.txt")]);
    composing.type("look");
    await composing.send("queue");
    composing.putBack({ text: "withdrawn", attachments: [] });
    uploads[0]!.done("u1");
    await vi.waitFor(() => expect(composing.text.value).toBe("withdrawn"));
    expect(door.tried.map(({ text }) => text)).toEqual(["look"]);
  });

  it("keeps its words if an upload fails, and never goes without the file", async () => {
    const { composing } = door;
    composing.attachments.add([file("a.txt")]);
    composing.type("look");
    await composing.send("queue");
    uploads[0]!.fail();
    await uploaded();
    expect(composing.problem.value?.message).toContain("a.txt");
    await composing.send("queue");
    expect([door.tried.length, composing.text.value, composing.postponed.value]).toEqual([0, "look", null]);
    composing.detach(composing.attachments.list.value[0]!.key);
    expect(composing.problem.value).toBe(null);
    await composing.send("queue");
    expect(door.tried).toHaveLength(1);
  });
});

describe("a message that waits for an upload behind another one, and was typed over", () => {
  beforeEach(holdUploads);
  afterEach(() => vi.unstubAllGlobals());

  const enter = (): void => door.composing.enter((text) => void door.composing.send("queue", false, text));

  /** "two" waits for the upload, and "three" was typed in its place. */
  async function typeOver(): Promise<void> {
    const { composing } = door;
    let arrive = (): void => undefined;
    door.answer = () => new Promise((resolve) => (arrive = resolve));
    composing.type("one");
    const first = composing.send("queue");
    composing.attachments.add([file("a.txt")]);
    composing.changesFrom(0);
    composing.type("two");
    enter();
    composing.changesFrom(0);
    composing.type("three");
    door.answer = async () => undefined;
    arrive();
    await first;
    expect([composing.postponed.value?.text, composing.text.value]).toEqual(["two", "three"]);
  }

  it("stands in the box again if it is taken back", async () => {
    const { composing } = door;
    await typeOver();
    composing.type("three and more");
    expect(composing.postponed.value?.text).toBe("two");
    composing.takeBack();
    expect([composing.postponed.value, composing.text.value]).toEqual([null, "two\n\nthree and more"]);
    uploads[0]!.done("u1");
    await uploaded();
    enter();
    await vi.waitFor(() => expect(composing.text.value).toBe(""));
    expect(door.tried.map(({ text }) => text)).toEqual(["one", "two\n\nthree and more"]);
  });

  it("is sent with its file when the upload is done, and what was entered behind it follows", async () => {
    const { composing } = door;
    await typeOver();
    enter();
    composing.type("threefour");
    uploads[0]!.done("u1");
    await vi.waitFor(() => expect(composing.text.value).toBe("four"));
    expect(door.tried.map(({ text, attachments }) => [text, attachments?.length])).toEqual([
      ["one", 0],
      ["two", 1],
      ["three", 0],
    ]);
  });

  it.each([
    ["the upload fails", () => uploads[0]!.fail()],
    ["its file is taken away", () => door.composing.detach(door.composing.attachments.list.value[0]!.key)],
  ])("stands in the box again with what was entered behind it if %s", async (_, change) => {
    const { composing } = door;
    await typeOver();
    enter();
    composing.changesFrom(0);
    composing.type("four");
    change();
    await uploaded();
    expect([composing.postponed.value, composing.text.value]).toEqual([null, "two\n\nthree\n\nfour"]);
    expect(door.tried).toHaveLength(1);
  });
});
