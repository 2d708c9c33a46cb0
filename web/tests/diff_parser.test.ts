import { describe, expect, it } from "vitest";
import { argumentsPreview } from "../src/calls/arguments_preview";
import { changedFiles } from "../src/inspector/changed_files";
import { languageOf, parseDiff } from "../src/ui/diff_parser";

const MARKED = `*** Begin Patch
*** Update File: a.py
*** Move to: b.py
@@ class A
 same
-old
+new
*** Add File: c.md
+# C
+
*** Delete File: d.txt
*** End Patch
`;

const UNIFIED = `--- a/x.py
+++ b/x.py
@@ -1,2 +1,2 @@
 def f():
--- removed, and no header
+    pass
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+hello
\\ No newline at end of file
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-bye
`;

describe("an edit", () => {
  it("in sections is read file by file", () => {
    expect(parseDiff(MARKED)).toMatchObject([
      { path: "a.py", change: "changed", movedTo: "b.py", added: 1, removed: 1 },
      { path: "c.md", change: "added", movedTo: null, added: 2, removed: 0 },
      { path: "d.txt", change: "deleted", lines: [] },
    ]);
    expect(parseDiff(MARKED)[0]!.lines.map((line) => line.kind)).toEqual(["place", "same", "remove", "add"]);
  });

  it("as a unified diff is read by the counts of its hunks", () => {
    expect(parseDiff(UNIFIED)).toMatchObject([
      { path: "x.py", change: "changed", added: 1, removed: 1 },
      { path: "new.txt", change: "added", added: 1 },
      { path: "gone.txt", change: "deleted", removed: 1 },
    ]);
    expect(parseDiff(UNIFIED)[0]!.lines.at(2)).toEqual({ kind: "remove", text: "-- removed, and no header" });
  });

  it("that is none has no files", () => {
    expect(parseDiff("just words\nand more")).toEqual([]);
    expect(parseDiff("")).toEqual([]);
  });

  it("is named by its paths, a script by its first line, all else by its first value", () => {
    expect(argumentsPreview("patch", JSON.stringify({ patch: MARKED }))).toBe("a.py, c.md, d.txt");
    expect(argumentsPreview("execute_code", JSON.stringify({ code: "\nimport os\n\nprint(1)\n" }))).toBe(
      "import os … (2 lines)",
    );
    expect(argumentsPreview("terminal", '{"command": "ls\\nls", "timeout": 3}')).toBe("ls");
    expect(argumentsPreview("terminal", '{"comm')).toBe('{"comm');
  });
});

it("the changes of a session are put to the files of its diff", () => {
  const change = (seq: number, path: string) => ({ seq, path, call_id: null, turn_id: null, at: 0 });
  const changes = [
    change(4, "/ws/x.py"),
    change(7, "/ws/back.py"),
    change(9, "/ws/x.py"),
    change(11, "/other/new.txt"),
  ];
  const files = changedFiles(
    {
      diff: `# x.py: someone edited it since\n${UNIFIED.replace("b/new.txt", "/other/new.txt")}# back.py: binary file, now 3 kB\n`,
      changes,
    },
    "/ws",
  );
  expect(files.map(({ path, seqs, diff, notes }) => [path, seqs, diff?.path ?? null, notes])).toEqual([
    ["x.py", [4, 9], "x.py", ["someone edited it since"]],
    ["back.py", [7], null, ["binary file, now 3 kB"]],
    ["/other/new.txt", [11], "/other/new.txt", []],
  ]);
});

it("a file's name tells its language", () => {
  expect(["a/b.py", "x.TSX", "Makefile", "a.tar.gz"].map(languageOf)).toEqual(["python", "typescript", "", ""]);
});
