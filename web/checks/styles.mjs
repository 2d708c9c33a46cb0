/**
 * A class belongs to one component: to the style file whose name it begins with. `.composer` and
 * `.composer-line` are composer.css's; `.is-…` says how a thing is, and never stands alone.
 *
 * Fails if a file styles what is not its own, if a class is used that no file has, and if a file
 * has one that nobody uses. Names are plain, so tests and people find them in the page.
 */

import { readdirSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";

const SOURCE = resolve(import.meta.dirname, "../src");
const INDEX = "styles.css";
/** Written by the highlighter, which is not ours. */
const FOREIGN = "hljs";

const entries = readdirSync(SOURCE, { recursive: true });
const problems = [];
const owners = new Map();
for (const file of entries.filter((entry) => entry.endsWith(".css") && entry !== INDEX)) {
  const name = basename(file, ".css").replaceAll("_", "-");
  if (owners.has(name)) problems.push(`${file} and ${owners.get(name)} own the same classes: rename one of them`);
  owners.set(name, file);
}

const read = (file) => readFileSync(join(SOURCE, file), "utf8");
const withoutComments = (text) => text.replaceAll(/\/\*[\s\S]*?\*\//g, "");
const classesIn = (selector) => Array.from(selector.matchAll(/\.([a-zA-Z][\w-]*)/g), ([, name]) => name);
const isState = (name) => name.startsWith("is-");

/** The file that a class belongs to: the one with the longest name that it begins with. */
function ownerOf(name) {
  const words = name.split("-");
  for (let count = words.length; count > 0; count--) {
    const file = owners.get(words.slice(0, count).join("-"));
    if (file !== undefined) return file;
  }
  return null;
}

/** Selectors one by one: a comma in brackets, at whatever depth, parts none. */
function selectorsOf(css) {
  const heads = Array.from(css.matchAll(/([^{};]+)\{/g), ([, head]) => head.trim());
  return heads.filter((head) => !(head.startsWith("@") || /^(from|to|\d+%)/.test(head))).flatMap(split);
}

function split(list) {
  const selectors = [""];
  let depth = 0;
  for (const char of list.replaceAll(/\s+/g, " ")) {
    depth += Number(char === "(") - Number(char === ")");
    if (char === "," && depth === 0) selectors.push("");
    else selectors[selectors.length - 1] += char;
  }
  return selectors.map((selector) => selector.trim());
}

const styled = new Map();
for (const file of owners.values()) {
  for (const selector of selectorsOf(withoutComments(read(file)))) {
    const names = classesIn(selector).filter((name) => !isState(name));
    for (const name of names) {
      const owner = ownerOf(name);
      if (owner === null) problems.push(`${file}: ".${name}" begins with the name of no style file`);
      else if (owner === file) styled.set(name, file);
    }
    if (names.some((name) => [file, null].includes(ownerOf(name)))) continue;
    if (names.length > 0)
      problems.push(
        `${file}: "${selector}" is defined in ${ownerOf(names[0])} already: style it there, or below a class of your own`,
      );
    else if (!file.startsWith("ui/")) problems.push(`${file}: "${selector}" would style every component`);
  }
}

/** Whole literals, and the fixed parts of templates. */
const used = new Set();
for (const file of entries.filter((entry) => /\.tsx?$/.test(entry))) {
  const text = read(file);
  for (const [word] of text.matchAll(/[a-z][\w-]*/g)) used.add(word);
  for (const [, literal] of text.matchAll(/\bclass="([^"]*)"/g)) {
    for (const name of literal.split(" ").filter((word) => word !== "" && !isState(word))) {
      if (ownerOf(name) === null) problems.push(`${file}: class "${name}" begins with the name of no style file`);
    }
  }
}
for (const [name, file] of styled) {
  if (!used.has(name) && ownerOf(name) !== owners.get(FOREIGN) && name !== FOREIGN && !name.startsWith("markdown-")) {
    problems.push(`${file}: nothing has the class "${name}"`);
  }
}

const imported = Array.from(read(INDEX).matchAll(/@import "\.\/([^"]+)"/g), ([, file]) => file);
for (const file of owners.values()) {
  if (imported.filter((other) => other === file).length !== 1) problems.push(`${INDEX} must import ${file} once`);
}

for (const problem of problems) console.error(`web/src: ${problem}`);
if (problems.length > 0) process.exit(1);
