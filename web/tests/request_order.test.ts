import { describe, expect, it } from "vitest";
import { afterChanges, inOrder } from "../src/api/request_order";

/** A request that is answered when the test says so. */
function request(done: string[], name: string) {
  let resolve!: (value: string) => void;
  let reject!: (error: Error) => void;
  const answer = new Promise<string>((...both) => ([resolve, reject] = both));
  const ask = (): Promise<string> => {
    done.push(name);
    return answer;
  };
  return { ask, resolve: (value: string) => resolve(value), reject: (error: Error) => reject(error) };
}

const turns = (): Promise<void> => new Promise((done) => setTimeout(done));

describe("what is changed and said in one session", () => {
  it("is asked for in its order", async () => {
    const requests: string[] = [];
    const first = request(requests, "first");
    const second = request(requests, "second");
    const changes = [inOrder("one", first.ask), inOrder("one", second.ask)];
    const said = afterChanges("one", request(requests, "said").ask);
    await turns();
    expect(requests).toEqual(["first"]);
    first.resolve("one");
    await turns();
    expect(requests).toEqual(["first", "second"]);
    second.resolve("two");
    await turns();
    expect(requests).toEqual(["first", "second", "said"]);
    expect(await Promise.all(changes)).toEqual(["one", "two"]);
    void said;
  });

  it("is not said with what could not be changed, and after that it is", async () => {
    const requests: string[] = [];
    const change = request(requests, "change");
    const changed = inOrder("two", change.ask);
    const said = afterChanges("two", request(requests, "said").ask);
    change.reject(new Error("no such model"));
    await expect(changed).rejects.toThrow("no such model");
    await expect(said).rejects.toThrow("no such model");
    void afterChanges("two", request(requests, "again").ask);
    await turns();
    expect(requests).toEqual(["change", "again"]);
  });

  it("is changed although the change before was not possible", async () => {
    const requests: string[] = [];
    const first = request(requests, "first");
    const failed = inOrder("three", first.ask);
    void inOrder("three", request(requests, "second").ask);
    first.reject(new Error("no"));
    await expect(failed).rejects.toThrow("no");
    await turns();
    expect(requests).toEqual(["first", "second"]);
  });

  it("waits for no other session", async () => {
    const requests: string[] = [];
    void inOrder("four", request(requests, "change").ask);
    void afterChanges("five", request(requests, "said").ask);
    await turns();
    expect(requests.sort()).toEqual(["change", "said"]);
  });
});
