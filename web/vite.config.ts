/// <reference types="vitest/config" />
import { defineConfig, type Plugin } from "vite";

/** Names what the first script will ask for, so that the browser fetches both at once. */
function preloads(source: string): Plugin {
  return {
    name: "preloads",
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle, filename }) =>
        Object.values(filename.endsWith("index.html") ? (bundle ?? {}) : {})
          .filter((output) => output.type === "chunk")
          .filter((chunk) => chunk.facadeModuleId?.endsWith(source))
          .flatMap((chunk) => [chunk.fileName, ...chunk.imports])
          .filter((name) => !html.includes(`/${name}"`))
          .map((name) => ({
            tag: "link",
            attrs: { rel: "modulepreload", crossorigin: true, href: `./${name}` },
            injectTo: "head" as const,
          })),
    },
  };
}

export default defineConfig({
  // Named from the page, which may be anywhere below its host.
  base: "./",
  plugins: [preloads("/src/page.tsx")],
  build: {
    outDir: "../src/keryx/server/page",
    emptyOutDir: true,
    target: "es2023",
    // The page's policy forbids data: fonts and scripts, so nothing is put inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    // The second page is a frame of the first: what draws diagrams there needs another policy.
    rolldownOptions: { input: ["index.html", "diagram.html"] },
  },
  server: {
    // `npm run dev` serves the source and passes the API on to a running `keryx serve`.
    proxy: { "/api": "http://127.0.0.1:8377" },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
});
