import { expect, it } from "vitest";
import { plainText } from "../src/ui/markdown/plain_text";

it("has the words and no marks", () => {
  const text = `# Title

Some **bold** and *slanted* \`code\`, [a link](https://example.com)
on two lines.[^1]

- one
  - nested
- [x] two

3. three
4. four

| a | b |
|---|---|
| **1** | 2 |

\`\`\`py
x = 1
\`\`\`

> quoted $x$`;
  expect(plainText(text)).toBe(`Title

Some bold and slanted code, a link
on two lines.[1]

- one
  - nested
- [x] two

3. three
4. four

a\tb
1\t2

x = 1

quoted x`);
});
