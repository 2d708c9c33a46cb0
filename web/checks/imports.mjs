/**
 * Folders of the page import one way. Fails, naming the files, if a folder reaches itself again
 * through others. Modules that import each other are found by Biome (noImportCycles).
 */

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

const SOURCE = resolve(import.meta.dirname, "../src");
/** `import … from "x"`, `export … from "x"`, `import "x"` and `import("x")`. */
const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g;

const FOLDERS = new Set(readdirSync(SOURCE).filter((name) => !name.includes(".")));

/** A folder below src stands for all that is in it; what lies in src itself is the top. */
function folderOf(file) {
  const [first, ...rest] = relative(SOURCE, file).split("/");
  return rest.length > 0 || FOLDERS.has(first) ? first : "(top)";
}

/** For each folder the folders that it imports, each with one import that shows it. */
function readImports() {
  const folders = new Map();
  for (const entry of readdirSync(SOURCE, { recursive: true })) {
    if (!/\.tsx?$/.test(entry)) continue;
    const file = join(SOURCE, entry);
    for (const [, target] of readFileSync(file, "utf8").matchAll(IMPORT)) {
      const from = folderOf(file);
      const to = folderOf(join(dirname(file), target));
      if (from === to) continue;
      if (!folders.has(from)) folders.set(from, new Map());
      if (!folders.get(from).has(to)) folders.get(from).set(to, `${entry} imports ${target}`);
    }
  }
  return folders;
}

/** The first way from a folder back to itself, as a list of folders; null if there is none. */
function findCycle(folders) {
  const finished = new Set();
  const visit = (folder, path) => {
    if (path.includes(folder)) return [...path.slice(path.indexOf(folder)), folder];
    if (finished.has(folder)) return null;
    for (const next of folders.get(folder)?.keys() ?? []) {
      const cycle = visit(next, [...path, folder]);
      if (cycle !== null) return cycle;
    }
    finished.add(folder);
    return null;
  };
  for (const folder of folders.keys()) {
    const cycle = visit(folder, []);
    if (cycle !== null) return cycle;
  }
  return null;
}

const folders = readImports();
const cycle = findCycle(folders);
if (cycle !== null) {
  console.error(`web/src: folders import in a cycle: ${cycle.join(" -> ")}`);
  for (let at = 0; at + 1 < cycle.length; at++) console.error(`  ${folders.get(cycle[at]).get(cycle[at + 1])}`);
  console.error("  Move what both need into a lower folder, or pass it in (web/README.md has the order).");
  process.exit(1);
}
