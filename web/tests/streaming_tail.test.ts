import { expect, it } from "vitest";
import { Blocks } from "../src/ui/markdown/blocks";
import { mendTail } from "../src/ui/markdown/streaming_tail";

const asIs = (html: string): string => html;

it.each([
  ["some **bold", "some **bold**"],
  ["some **bold*", "some **bold**"],
  ["some **", "some "],
  ["some *it", "some *it*"],
  ["**a *b", "**a *b***"],
  ["some `code", "some `code`"],
  ["some `", "some "],
  ["``a ` b", "``a ` b``"],
  ["~~gone", "~~gone~~"],
  ["see [the docs", "see the docs"],
  ["see [the docs]", "see the docs"],
  ["see [the docs](https://exa", "see the docs"],
  ["see [the docs](https://example.com) now", "see [the docs](https://example.com) now"],
  ["see [the **docs](htt", "see the **docs**"],
  ["a ![pic", "a "],
  ["a ![pic](x.p", "a "],
  ["as said[^1", "as said"],
  ["a list [1] of", "a list [1] of"],
  ["snake_case_name", "snake_case_name"],
  ["2 * 3", "2 * 3"],
  ["- item **bo", "- item **bo**"],
  ["1. one\n2. two `x", "1. one\n2. two `x`"],
  ["text\n-", "text\n"],
  ["text\n==", "text\n"],
  ["it is \\(x^2", "it is `x^2`"],
  ["it is \\(x^2\\) and", "it is \\(x^2\\) and"],
  ["it costs $5", "it costs $5"],
  ["```py\nx = **y", "```py\nx = **y"],
  ["| a | **b", "| a | **b** |\n|---|---|\n"],
  ["| a | b |", "| a | b |\n|---|---|\n"],
  ["| a | b |\n|--", "| a | b |\n|---|---|\n"],
  ["| a | b |\n|---|---|\n| **x", "| a | b |\n|---|---|\n| **x**"],
])("%j is shown as %j", (text, mended) => {
  expect(mendTail(text)).toBe(mended);
});

const TEXT = `Intro with **bold words**, *slanted*, \`code\` and [a link](https://example.com/a_b).

- first **item**
- second \`item\` with ~~gone~~
  - nested _words_

> a quote with **weight**

| name | value |
|---|--:|
| **x** | \`1\` |

The end[^1] of **it**, with \\(x^2\\) and ![alt](pic.png).

[^1]: A note with [words](docs/a.md).`;

it("shows no raw mark at any moment of a stream", () => {
  const blocks = new Blocks(asIs, { picture: (path) => `api/sessions/s/pictures?path=${path}` });
  for (let end = 1; end < TEXT.length; end++) {
    const html = blocks
      .of(TEXT.slice(0, end), false)
      .map((block) => (block.kind === "html" ? block.html : ""))
      .join("");
    const shown = html.replaceAll(/<code[^>]*>.*?<\/code>|<span class="markdown-math.*?<\/span>|<[^>]+>/gs, "");
    expect(shown, TEXT.slice(Math.max(0, end - 30), end)).not.toMatch(/\*\*|`|~~|\]\(|\[|\||\\\(/);
  }
});
