/** A value is called by what it is, not by how it came: no `found`, no `told`. */

import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const WEB = resolve(import.meta.dirname, "..");
const NAMES = "asked|each|found|given|kept|known|made|taken|told|wanted";
/** A name of its own: no property, no key of an object, no part of a longer word. */
const NAME = new RegExp(`(?<![.\\w$-])(${NAMES})\\b(?!\\s*\\??:|-)`, "g");
const WORDS = /\/\*[\s\S]*?\*\/|\/\/.*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\$]|\\.|\$(?!\{))*`/g;

let failed = false;
for (const folder of ["src", "tests"]) {
  for (const entry of readdirSync(join(WEB, folder), { recursive: true })) {
    if (!/\.tsx?$/.test(entry) || entry.startsWith("texts/")) continue;
    // Comments and texts are prose; lines stay, so that they can be told.
    const code = readFileSync(join(WEB, folder, entry), "utf8").replaceAll(WORDS, (text) =>
      text.replaceAll(/[^\n]/g, " "),
    );
    for (const match of code.matchAll(NAME)) {
      const line = code.slice(0, match.index).split("\n").length;
      console.error(`web/${folder}/${entry}:${line}: call "${match[1]}" by what it is`);
      failed = true;
    }
  }
}
if (failed) process.exit(1);
