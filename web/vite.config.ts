/// <reference types="vitest/config" />
import { defineConfig } from "vite";

export default defineConfig({
  base: "/",
  build: {
    outDir: "../src/keryx/server/page",
    emptyOutDir: true,
    target: "es2023",
    // The page's policy forbids data: fonts and scripts, so nothing is put inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `npm run dev` serves the source and passes the API on to a running `keryx serve`.
    proxy: { "/api": "http://127.0.0.1:8377" },
  },
  test: { environment: "node", include: ["tests/**/*.test.ts"] },
});
