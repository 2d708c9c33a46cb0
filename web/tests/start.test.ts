import { describe, expect, it } from "vitest";
import { fittingExamples } from "../src/screens/examples";
import { matchingCommands } from "../src/search/matching_commands";
import { readSwipe } from "../src/ui/swipe";

describe("the examples", () => {
  it("use tools that are there", () => {
    const tools = new Set(["read_file", "search_files", "execute_code", "terminal"]);
    expect(fittingExamples(tools, "openai:large")).toEqual(["folder", "compare", "todo"]);
  });

  it("need no tools if there are none, or if the model uses none", () => {
    expect(fittingExamples(new Set(), "openai:large")).toEqual(["haiku", "explain", "letter"]);
    expect(fittingExamples(new Set(["read_file"]), "local:smollm2")).toEqual(["haiku", "explain", "letter"]);
  });
});

describe("a swipe", () => {
  it("from the edge opens the list, to the left closes it", () => {
    expect(readSwipe({ x: 5, y: 300 }, { x: 120, y: 310 })).toBe(true);
    expect(readSwipe({ x: 250, y: 300 }, { x: 100, y: 310 })).toBe(false);
  });

  it("that begins elsewhere, is short, or goes down is none", () => {
    expect(readSwipe({ x: 150, y: 300 }, { x: 300, y: 310 })).toBe(null);
    expect(readSwipe({ x: 5, y: 300 }, { x: 40, y: 300 })).toBe(null);
    expect(readSwipe({ x: 5, y: 300 }, { x: 120, y: 450 })).toBe(null);
  });
});

describe("commands by name", () => {
  const commands = ["New session", "Theme: Dark", "/fork · Start a new session"].map((name) => ({
    name,
    run: () => undefined,
  }));
  const names = (words: string): string[] => matchingCommands(commands, words).map(({ name }) => name);

  it("match by the beginnings of their words, in any order", () => {
    expect(names("dark")).toEqual(["Theme: Dark"]);
    expect(names("sess new")).toEqual(["New session", "/fork · Start a new session"]);
    expect(names("/fork")).toEqual(["/fork · Start a new session"]);
    expect(names("ession")).toEqual([]);
  });
});
