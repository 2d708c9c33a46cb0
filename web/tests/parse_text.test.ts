import { describe, expect, it } from "vitest";
import { completionTarget, parseText, quotedPath, rankMatches } from "../src/composer/parse_text";

describe("what a text is", () => {
  it.each([
    ["hello", "message"],
    ["!", "message"],
    [" !ls", "message"],
    [" /stop", "message"],
    ["/", "message"],
    ["/etc/hosts is broken", "message"],
    ["/usr", "unknown"],
    ["/stop", "slash"],
    ["/STOP", "slash"],
    ["/exec", "slash"],
    ["/model  ", "slash"],
  ])("%j is a %s", (text, what) => {
    expect(parseText(text).what).toBe(what);
  });

  it("has the command of the terminal as it was typed", () => {
    expect(parseText("!  git log | head -3 ")).toEqual({ what: "terminal", command: "git log | head -3" });
  });

  it("keeps the lines of code", () => {
    expect(parseText("/exec for n in range(3):\n    print(n)")).toEqual({
      what: "code",
      code: "for n in range(3):\n    print(n)",
    });
  });

  it("has what a command is about", () => {
    const said = parseText("/model openai:one ");
    expect(said.what === "slash" && [said.slash.name, said.rest]).toEqual(["model", "openai:one"]);
  });
});

describe("what is completed", () => {
  const at = (text: string): unknown => completionTarget(text, text.length);

  it("completes commands only at the beginning", () => {
    expect(at("/mo")).toEqual({ what: "slash", typed: "mo", from: 0 });
    expect(at("see /mo")).toBeNull();
  });

  it("completes values of those commands that choose", () => {
    expect(at("/model gp")).toEqual({ what: "choice", name: "model", typed: "gp", from: 7 });
    expect(at("/exec pr")).toBeNull();
  });

  it("completes files behind an at sign that stands by itself, folder by folder", () => {
    expect(at("look at @")).toEqual({ what: "file", folder: "", typed: "", from: 8 });
    expect(at("look at @src/ke")).toEqual({ what: "file", folder: "src/", typed: "ke", from: 8 });
    expect(at("write to me@example")).toBeNull();
    expect(at("@done and more")).toBeNull();
  });

  it("looks at what stands before the caret", () => {
    expect(completionTarget("@src and more", 4)).toEqual({ what: "file", folder: "", typed: "src", from: 0 });
  });

  it("puts what begins with it before what holds it", () => {
    expect(rankMatches(["gamma", "magma", "ma"], "MA", (word) => word)).toEqual(["magma", "ma", "gamma"]);
  });

  it("quotes a path that has spaces", () => {
    expect([quotedPath("a/b.txt"), quotedPath("a b.txt")]).toEqual(["a/b.txt", '"a b.txt"']);
  });
});
