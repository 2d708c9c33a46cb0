/// <reference types="vitest/config" />
import { defineConfig } from "vite";
import { characterNames } from "./bundling/character_names.ts";
import { FirstViewChunk, scriptInDocument } from "./bundling/first_view.ts";

const firstView = new FirstViewChunk("/src/page.tsx", ["/src/main.tsx", "/src/diagram_page.ts"]);

export default defineConfig({
  // Named from the page, which may be anywhere below its host.
  base: "./",
  plugins: [
    characterNames("/src/ui/markdown/character_names.ts"),
    firstView.plugin(),
    scriptInDocument("src/first_requests.ts"),
  ],
  build: {
    outDir: "../src/keryx/server/page",
    emptyOutDir: true,
    target: "es2023",
    // The page's policy forbids data: fonts and scripts, so nothing is put inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    rolldownOptions: {
      // The second page is a frame of the first: what draws diagrams there needs another policy.
      input: ["index.html", "diagram.html"],
      output: {
        codeSplitting: { includeDependenciesRecursively: false, groups: [{ name: firstView.name }] },
      },
    },
  },
  server: {
    // `npm run dev` serves the source and passes the API on to a running `keryx serve`.
    proxy: { "/api": "http://127.0.0.1:8377" },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
});
