import { describe, expect, it } from "vitest";
import { conflictsOf, isSame, parseVariables, valueAt, variableLines } from "../src/settings_screen/document";
import { FIELDS, search } from "../src/settings_screen/field_list";

describe("values of the configuration", () => {
  it("are read by their paths", () => {
    const document = { limits: { steps: 5 }, list: [1] };
    expect(valueAt(document, ["limits", "steps"])).toBe(5);
    expect(valueAt(document, ["limits", "steps", "deeper"])).toBeUndefined();
    expect(valueAt(document, ["list", "0"])).toBeUndefined();
    expect(valueAt(null, ["limits"])).toBeUndefined();
  });

  it("are the same in any order of a table", () => {
    expect(isSame({ a: 1, b: [{ c: 1, d: 2 }] }, { b: [{ d: 2, c: 1 }], a: 1 })).toBe(true);
    expect(isSame([1, 2], [2, 1])).toBe(false);
    expect(isSame(undefined, undefined)).toBe(true);
    expect(isSame(undefined, "")).toBe(false);
  });
});

describe("conflicts", () => {
  const before = { limits: { steps: 200, tokens: 5 } };

  it("are changes of the same setting only", () => {
    const now = { limits: { steps: 300, tokens: 5 } };
    const edits = [
      { path: ["limits", "steps"], value: 100 },
      { path: ["limits", "tokens"], value: 6 },
      { path: ["model"], value: "x:y" },
    ];
    expect(conflictsOf(before, now, edits)).toEqual([{ path: ["limits", "steps"], value: 100, theirs: 300 }]);
  });

  it("are not two equal changes", () => {
    expect(conflictsOf(before, { limits: { steps: 100 } }, [{ path: ["limits", "steps"], value: 100 }])).toEqual([]);
  });

  it("are removals too", () => {
    const edits = [{ path: ["limits", "steps"], value: undefined }];
    expect(conflictsOf(before, { limits: { steps: 9 } }, edits)[0]?.theirs).toBe(9);
    expect(conflictsOf(before, { limits: {} }, edits)).toEqual([]);
  });
});

describe("variables of a program", () => {
  const secret = { $secret: "abc" };

  it("keep a secret that is shown as dots", () => {
    const table = { TOKEN: secret, MODE: "fast" };
    const text = variableLines(table, "••");
    expect(text).toBe("TOKEN=••\nMODE=fast");
    expect(parseVariables(text, table, "••")).toEqual({ table });
  });

  it("are taken as they are written", () => {
    expect(parseVariables(" A = b=c \n\nB=", {}, "••")).toEqual({ table: { A: "b=c", B: "" } });
    expect(parseVariables("TOKEN=••", {}, "••")).toEqual({ table: { TOKEN: "••" } });
    expect(parseVariables("A=1\nwithout a sign", {}, "••")).toEqual({ wrong: "without a sign" });
    expect(parseVariables("=x", {}, "••")).toEqual({ wrong: "=x" });
  });
});

describe("the search", () => {
  it("finds settings by all of its words, in labels, help and paths", () => {
    expect(search("cost day").fields.map(({ path }) => path.join("."))).toEqual(["limits.cost_per_day"]);
    expect(search("limits.steps").fields).toHaveLength(1);
    expect(search("API key").sections).toContain("providers");
    expect(search("no such thing")).toEqual({ fields: [], sections: [] });
  });

  it("offers the tools of every front end that the configuration has", () => {
    const paths = FIELDS.map(({ path }) => path.join("."));
    const frontEnds = ["cli", "web", "gateway", "program", "api"];
    expect(paths).toEqual(expect.arrayContaining(frontEnds.map((name) => `profiles.default.toolsets.${name}`)));
  });

  it("covers settings that are in one place each", () => {
    expect(new Set(FIELDS.map(({ path }) => path.join("."))).size).toBe(FIELDS.length);
  });
});
