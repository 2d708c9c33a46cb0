import { expect, it } from "vitest";
import { isPlain } from "../src/ui/markdown/plain_html";

it.each([
  "",
  "words, 1 > 0 and &lt;script&gt;",
  '<p dir="auto">One <em>and</em> <strong>two</strong> <code>a &amp; b</code><br>\n</p>',
  '<ul dir="auto"><li>item</li></ul><hr>',
  '<span class="markdown-math is-inline" dir="ltr">x^2</span>',
  '<table dir="auto"><thead><tr><th dir="auto" class="markdown-right">a</th></tr></thead></table>',
])("leaves as it is: %s", (html) => {
  expect(isPlain(html)).toBe(true);
});

it.each([
  "<script>alert(1)</script>",
  "</script>",
  "<SCRIPT>",
  "<p onclick=alert(1)>",
  '<p class="a" onclick="alert(1)">',
  '<p class="a"onclick="alert(1)">',
  '<p class="a\nb">',
  '<p class="&quot; onclick=alert(1)">',
  "<p class=a>",
  '<p style="x">',
  '<p id="location">',
  "<p/onclick=alert(1)>",
  "<p\tonclick=alert(1)>",
  "<p ",
  "<p",
  "< p>",
  "<",
  "<a>",
  '<a href="https://example.com">x</a>',
  '<img src="x">',
  "<input>",
  "<svg>",
  "<math>",
  "<style>",
  "<template>",
  "<noscript>",
  "<textarea>",
  "<!-- -->",
  "<!--><script>",
  "<![CDATA[",
  "<?xml?>",
  "<preface>",
  "<em-x>",
  "<p>fine</p><iframe>",
])("has cleaned: %s", (html) => {
  expect(isPlain(html)).toBe(false);
});
