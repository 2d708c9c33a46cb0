/**
 * How the files of the first view reach the browser: a script in the document, one chunk beside the
 * first module, and the names of both chunks in the document.
 */

import { build, type Plugin } from "vite";

interface ModuleGraph {
  getModuleInfo: (id: string) => { readonly importedIds: readonly string[] } | null;
}

/** The modules that these import, directly or through others, without those that are loaded later. */
function staticImports(entries: readonly string[], graph: ModuleGraph): Set<string> {
  const ids = new Set(entries);
  for (const id of ids) for (const imported of graph.getModuleInfo(id)?.importedIds ?? []) ids.add(imported);
  return ids;
}

/**
 * Keeps what the first view needs beyond the first module in one chunk, and names it in the document.
 *
 * A browser has six connections to a host, and each file costs it milliseconds. Without this, every
 * module that a later chunk uses as well is a file of its own.
 */
export class FirstViewChunk {
  private modules: ReadonlySet<string> = new Set();

  /** `page` is the first view; what `others` import stays where it is. */
  constructor(
    private readonly page: string,
    private readonly others: readonly string[],
  ) {}

  readonly name = (id: string): string | null => (this.modules.has(id) ? "page" : null);

  plugin(): Plugin {
    const chunk = this;
    return {
      name: "first-view-chunk",
      buildEnd() {
        const named = (source: string): string[] => [...this.getModuleIds()].filter((id) => id.endsWith(source));
        const elsewhere = staticImports(chunk.others.flatMap(named), this);
        const ids = [...staticImports(named(chunk.page), this)];
        chunk.modules = new Set(ids.filter((id) => !elsewhere.has(id)));
      },
      transformIndexHtml: {
        order: "post",
        handler: (html, { bundle, filename }) =>
          Object.values(filename.endsWith("index.html") ? (bundle ?? {}) : {})
            .filter((output) => output.type === "chunk")
            .filter((output) => output.moduleIds.some((id) => id.endsWith(chunk.page)))
            .flatMap((output) => [output.fileName, ...output.imports])
            .filter((name) => !html.includes(`/${name}"`))
            .map((name) => ({
              tag: "link",
              attrs: { rel: "modulepreload", crossorigin: true, href: `./${name}` },
              injectTo: "head" as const,
            })),
      },
    };
  }
}

/** Puts this script into the document, before all that the browser waits for. */
export function scriptInDocument(entry: string): Plugin {
  return {
    name: "script-in-document",
    transformIndexHtml: {
      order: "post",
      handler: async (_html, { bundle, filename }) => {
        if (bundle === undefined || !filename.endsWith("index.html")) return [];
        const outputs = await build({
          configFile: false,
          logLevel: "error",
          build: { write: false, target: "es2023", lib: { entry, formats: ["iife"], name: "first" } },
        });
        const [output] = [outputs].flat();
        if (output === undefined || !("output" in output)) throw new Error(`${entry} was not built`);
        return [{ tag: "script", children: output.output[0].code.trim(), injectTo: "head-prepend" as const }];
      },
    },
  };
}
