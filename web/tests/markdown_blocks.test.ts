import { expect, it } from "vitest";
import { Blocks } from "../src/ui/markdown/blocks";

const TEXT = `# Title

Some *text* with a [link](https://example.com) and [another][far].

- one

- two

      deep code
  still two
3. three

| a | b |
|---|--:|
| 1 | 2 |

\`\`\`python
def f():

    return 1
\`\`\`

> quoted <b>not html</b> [bad](javascript:alert(1)) ![picture](https://example.com/x.png)

    indented code

[far]: https://example.com/far
The end.`;

const asIs = (html: string): string => html;
const htmlOf = (blocks: readonly { kind: string }[]): string => JSON.stringify(blocks);

it("comes to the same piece by piece as in one go", () => {
  for (const size of [1, 3, 7, 50]) {
    const blocks = new Blocks(asIs);
    for (let end = size; end < TEXT.length; end += size) blocks.of(TEXT.slice(0, end), false);
    expect(htmlOf(blocks.of(TEXT, true))).toBe(htmlOf(new Blocks(asIs).of(TEXT, true)));
  }
});

it("renders what is settled once", () => {
  let rendered = 0;
  const blocks = new Blocks((html) => {
    rendered += html.length;
    return html;
  });
  const paragraph = `${"word ".repeat(20)}\n\n`;
  const text = paragraph.repeat(100);
  for (let end = 10; end < text.length; end += 10) blocks.of(text.slice(0, end), false);
  // Each paragraph is drawn about ten times while it grows, not a thousand times.
  expect(rendered).toBeLessThan(text.length * 15);
  const before = blocks.of(text.slice(0, -1), false);
  const after = blocks.of(text, true);
  expect(after.filter((block, at) => block === before[at])).toHaveLength(100);
});

it("begins anew when the text is another", () => {
  const blocks = new Blocks(asIs);
  blocks.of("one\n\ntwo", false);
  expect(blocks.of("three", false)).toMatchObject([{ kind: "html", html: '<p dir="auto">three</p>\n' }]);
});

it("shows an open fence as code, and says that it may grow", () => {
  const blocks = new Blocks(asIs);
  expect(blocks.of("```py\nx = 1\n", false)).toEqual([{ kind: "code", language: "py", text: "x = 1", open: true }]);
  expect(blocks.of("```py\nx = 1\n```", true)).toEqual([{ kind: "code", language: "py", text: "x = 1", open: false }]);
});

it("lets no raw HTML, no style, no picture and no address of another kind through", () => {
  const html = htmlOf(new Blocks(asIs).of(TEXT, true));
  expect(html).not.toMatch(/<b>|style=|<img|href=\\"javascript/);
  expect(html).toContain('rel=\\"noopener noreferrer\\"');
  expect(html).toContain('class=\\"markdown-right\\"');
});
