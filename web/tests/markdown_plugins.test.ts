import { expect, it } from "vitest";
import { Blocks } from "../src/ui/markdown/blocks";
import { SAFE_ADDRESS } from "../src/ui/markdown/parser";
import { pathOf, workspacePath } from "../src/ui/markdown/workspace_files";

const picture = (path: string): string => `api/sessions/s-1/pictures?path=${encodeURIComponent(path)}`;

function html(text: string): string {
  return new Blocks((raw) => raw, { picture })
    .of(text, true)
    .map((block) => (block.kind === "html" ? block.html : `[${block.kind} ${block.text}]`))
    .join("");
}

it("finds maths in all four forms, and leaves money alone", () => {
  expect(html("so $x^2$ is")).toContain('<span class="markdown-math is-inline" dir="ltr">x^2</span>');
  expect(html("so \\(a<b\\) is")).toContain('is-inline" dir="ltr">a&lt;b</span>');
  expect(html("$$\n\\int_0^1 x\n$$")).toContain('is-display" dir="ltr">\\int_0^1 x</span>');
  expect(html("\\[ y \\]")).toContain('is-display" dir="ltr">y</span>');
  expect(html("words $$z$$ words")).toContain('is-display" dir="ltr">z</span>');
  expect(html("```math\nq\n```")).toContain('is-display" dir="ltr">q</span>');
  for (const money of ["costs $5 and $6", "from $5-$10", "a $ b $ c", "it is \\$5$ off", "`$x$`"]) {
    expect(html(money)).not.toContain("markdown-math");
  }
});

it("makes boxes of task lists", () => {
  const list = html("- [ ] open\n- [x] done\n- [link](https://example.com)\n- plain");
  expect(list.match(/<input type="checkbox" disabled> open/g)).toHaveLength(1);
  expect(list.match(/<input type="checkbox" disabled checked> done/g)).toHaveLength(1);
  expect(list.match(/<input/g)).toHaveLength(2);
});

it("links footnotes both ways, wherever they stand", () => {
  const text = html("A[^1] and B[^b].\n\n[^1]: One *note*.\n[^b]: Two\nlines.\n\nEnd.");
  expect(text).toContain('<sup class="markdown-note-reference"><a href="#note-1">1</a></sup>');
  expect(text).toContain(
    '<p class="markdown-note" dir="auto" tabindex="-1"><sup class="markdown-note-back"><a href="#note-1">1</a></sup> One <em>note</em>.</p>',
  );
  expect(text).toContain("Two\nlines.</p>");
});

it("leads to files of the workspace, and shows their pictures", () => {
  expect(html("[the plan](docs/the%20plan.md#top)")).toContain(
    '<a href="#file=docs%2Fthe%20plan.md" class="markdown-file">the plan</a>',
  );
  expect(html("![a chart](./out/chart.png)")).toContain(
    '<img src="api/sessions/s-1/pictures?path=out%2Fchart.png" alt="a chart" loading="lazy">',
  );
  expect(pathOf("#file=docs%2Fthe%20plan.md")).toBe("docs/the plan.md");
});

it("fetches nothing from elsewhere, and follows no way out of the workspace", () => {
  const remote = html("![a cat](https://example.com/cat.png)");
  expect(remote).not.toContain("<img");
  expect(remote).toContain('href="https://example.com/cat.png"');
  for (const address of [
    "../secret",
    "a/../../b",
    "/etc/passwd",
    "~/x",
    "javascript:alert(1)",
    "data:x",
    "C:\\x",
    "%zz",
  ])
    expect(workspacePath(address), address).toBeNull();
  expect(html("![x](data:image/png;base64,AAAA)")).not.toContain("<img");
  expect(html("[x](javascript:alert)")).not.toContain("href");
  expect(SAFE_ADDRESS.test("api/sessions/s-1/pictures?path=a")).toBe(true);
  expect(SAFE_ADDRESS.test("api/sessions/s-1")).toBe(false);
});

it("draws diagrams from whole blocks", () => {
  const blocks = new Blocks((raw) => raw);
  expect(blocks.of("```mermaid\ngraph TD", false)).toMatchObject([{ kind: "diagram", open: true }]);
  expect(blocks.of("```mermaid\ngraph TD\n```", true)).toMatchObject([{ kind: "diagram", open: false }]);
});

it("lets every block find its own direction", () => {
  const text = html("שלום\n\n- אחד\n\n# Title\n\n> quote\n\n| a |\n|---|\n| b |");
  for (const start of ["<p", "<ul", "<h1", "<blockquote", "<table", "<th", "<td"]) {
    expect(text).toContain(`${start} dir="auto"`);
  }
});
