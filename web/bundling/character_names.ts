/** Puts a module of the page in the place of `entities`, the package that the Markdown parser decodes names with. */

import type { Plugin } from "vite";

export function characterNames(module: string): Plugin {
  return {
    name: "character-names",
    enforce: "pre",
    // The unit tests have no browser to ask, and keep the package.
    apply: (_config, { mode }) => mode !== "test",
    resolveId(source) {
      return source === "entities" ? this.resolve(module) : null;
    },
  };
}
