"""What replies are made of: maths, diagrams, lists, notes, files, directions, and paper."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, printed_by_the_browser
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module")]

RICH = r"""# A report

Energy is $E = mc^2$, and it costs $5 and $6. In full:

$$
\int_0^\infty e^{-x^2}\,dx = \frac{\sqrt{\pi}}{2}
$$

```mermaid
graph LR
  Start --> Middle{Is it so?}
  Middle -- yes --> End
  Middle -- no --> Start
```

- [x] measured
- [ ] written down

The claim[^1] stands in [the notes](docs/notes.md), with a chart:

![a red dot](out/dot.png)

![far away](https://example.com/cat.png)

| name | a very long column that is wide | another column that is wide | and one more |
|---|---|---|--:|
| **x** | `1` | words that go on and on and on | 3 |

```python
def area(radius: float) -> float:  # a long line of code that should not be covered by any label
    return 3.14 * radius**2
```

[^1]: As *everybody* knows.
"""
BROKEN = "```mermaid\ngraph LR\n  A -->|x B\n```\n\nAfter it."
HEBREW = (
    "שלום, זה **מבחן** של כיוון הטקסט.\n\n- פריט ראשון\n- פריט שני\n\n> ציטוט\n\n"
    "And this is English."
)
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4//8/w38GIAXDIBKE0DHxgljNBAAO9TXL0Y4OHwAAAABJRU5ErkJggg=="
)


def workspace_files(workspace: Path) -> None:
    (workspace / "docs").mkdir(exist_ok=True)
    (workspace / "out").mkdir(exist_ok=True)
    (workspace / "docs" / "notes.md").write_text("# Notes\n\nEverybody knows.\n")
    (workspace / "out" / "dot.png").write_bytes(DOT)


@pytest.mark.promise("page20.1")
async def test_a_reply_shows_maths_diagrams_lists_and_notes(tab: Tab, house: House) -> None:
    workspace_files(house.served.workspace)
    house.stage.on("Show everything", Reply(text=RICH))
    await tab.begin("Show everything")
    reply = tab.replies.last
    # Maths is drawn by elements, in fonts of our own; money is none.
    await expect(reply.locator(".katex")).to_have_count(2)
    await expect(reply.locator(".katex-display")).to_be_visible()
    await expect(reply).to_contain_text("costs $5 and $6")
    # A diagram is a picture, and its source is a click away.
    diagram = reply.get_by_role("img", name="Diagram: graph LR")
    await expect(diagram).to_be_visible()
    assert await diagram.evaluate("picture => picture.naturalWidth") > 100
    await reply.get_by_role("button", name="Source").click()
    await expect(reply.locator("pre", has_text="Is it so?")).to_be_visible()
    await reply.get_by_role("button", name="Diagram").click()
    await expect(diagram).to_be_visible()
    boxes = reply.get_by_role("checkbox")
    await expect(boxes).to_have_count(2)
    await expect(boxes.first).to_be_checked()
    await expect(boxes.last).not_to_be_checked()
    await reply.get_by_role("link", name="1", exact=True).first.click()
    await expect(reply.locator(".markdown-note")).to_be_focused()
    # The table scrolls within itself, and the label of the code covers none of it.
    label, code = reply.locator(".code figcaption").last, reply.locator(".code pre").last
    above, below = await label.bounding_box(), await code.bounding_box()
    assert above is not None
    assert below is not None
    assert above["y"] + above["height"] <= below["y"] + 1
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.promise("page20.1")
async def test_a_diagram_that_cannot_be_drawn_shows_its_source(tab: Tab, house: House) -> None:
    house.stage.on("Show a broken one", Reply(text=BROKEN))
    await tab.begin("Show a broken one")
    await expect(tab.replies.last).to_contain_text("The diagram could not be drawn.")
    await expect(tab.replies.last.locator("pre")).to_contain_text("A -->|x B")


@pytest.mark.promise("page20.2")
async def test_links_and_pictures_lead_to_files_of_the_workspace(
    tab: Tab, house: House, somebody: Person
) -> None:
    workspace_files(house.served.workspace)
    house.stage.on("Link the files", Reply(text=RICH + "\n![lost](out/none.png) [gone](none.txt)"))
    somebody.watch.expects("404")
    urls: list[str] = []
    tab.page.on("request", lambda request: urls.append(request.url))
    await tab.begin("Link the files")
    reply = tab.replies.last
    dot = reply.get_by_role("img", name="a red dot")
    await expect(dot).to_be_visible()
    await expect(reply.get_by_role("link", name="lost")).to_be_visible()
    # Nothing comes from elsewhere by itself: what is far away is a link.
    await expect(reply.get_by_role("link", name="far away")).to_have_attribute(
        "href", "https://example.com/cat.png"
    )
    here = house.served.url.rstrip("/")
    assert [url for url in urls if not url.startswith((here, "blob:", "data:"))] == []
    await reply.get_by_role("link", name="the notes").click()
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    await expect(inspector.locator("pre")).to_contain_text("Everybody knows.")
    async with tab.page.expect_download() as download:
        await inspector.get_by_role("link", name="Download").click()
    assert (await download.value).suggested_filename == "notes.md"
    await reply.get_by_role("link", name="gone").click()
    await expect(inspector).to_contain_text("doesn't exist")


@pytest.mark.promise("page20.3")
async def test_a_text_from_right_to_left_is_shown_so(tab: Tab, house: House) -> None:
    house.stage.on("שלום", Reply(text=HEBREW))
    await tab.starts_anew()
    await tab.box.fill("שלום לכולם")
    way = "element => getComputedStyle(element).direction"
    assert await tab.box.evaluate(way) == "rtl"
    await tab.box.press("Enter")
    await expect(tab.replies.last).to_contain_text("And this is English.")
    reply = tab.replies.last
    assert await tab.said.last.locator(".row-text").evaluate(way) == "rtl"
    assert [
        await reply.locator(part).first.evaluate(way) for part in ("p", "ul", "blockquote")
    ] == [
        "rtl",
        "rtl",
        "rtl",
    ]
    assert await reply.get_by_text("And this is English.").evaluate(way) == "ltr"
    item = await reply.locator("li").first.bounding_box()
    block = await reply.bounding_box()
    assert item is not None
    assert block is not None
    assert abs(item["x"] - block["x"]) < abs(
        item["x"] + item["width"] - block["x"] - block["width"]
    )


@pytest.mark.promise("page20.4")
async def test_a_session_is_printed_whole(tab: Tab, house: House) -> None:
    for number in range(12):
        text = "\n\n".join(f"Part {number}, paragraph {line}." for line in range(12))
        house.stage.on(f"Print number {number}.", Reply(text=text))
    await tab.begin("Print number 0.")
    for number in range(1, 12):
        await expect(tab.replies.last).to_contain_text(f"Part {number - 1}, paragraph 11.")
        await tab.settles()
        await tab.say(f"Print number {number}.")
    await expect(tab.replies.last).to_contain_text("Part 11, paragraph 11.")
    await tab.settles()
    assert await tab.replies.count() < 12, "rows out of view are not in the document"
    # The browser's own menu waits for nothing, and has all rows that are loaded.
    printed = await printed_by_the_browser(tab)
    assert re.findall(r"Part (\d+), paragraph 11\.", printed) == [str(n) for n in range(12)]
    assert "not printed" not in printed
    await expect(tab.list).to_be_visible()
    await tab.transcript.evaluate(
        "element => { window.print = () => { document.body.dataset.printed = element.innerText } }"
    )
    await tab.page.keyboard.press("Control+p")
    body = tab.page.locator("body")
    await expect(body).to_have_attribute("data-printed", re.compile("Part 11"))
    text = await body.get_attribute("data-printed") or ""
    assert re.findall(r"Part (\d+), paragraph 11\.", text) == [str(n) for n in range(12)]
    await tab.page.emulate_media(media="print")
    await expect(tab.list).to_be_hidden()
    await expect(tab.box).to_be_hidden()
    await expect(tab.replies).to_have_count(12)
    height = await tab.page.evaluate("document.documentElement.scrollHeight")
    last = await tab.replies.last.bounding_box()
    assert last is not None
    assert last["y"] + last["height"] <= height
    await tab.page.emulate_media(media="screen")
    await tab.page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    await expect(tab.list).to_be_visible()


async def test_names_of_characters_are_those_of_the_markdown_standard(
    tab: Tab, house: House
) -> None:
    names = (
        "&copy; &amp; &AMP; &semi; &lt;b&gt; &ngE; &CounterClockwiseContourIntegral; &#65; &#x42;"
    )
    unknown = "&notit; &ampfoo; &nosuch; &copy &MadeUpEntity;"
    house.stage.on("Name them", Reply(text=f"{names} {unknown} a&NewLine;b"))
    await tab.begin("Name them")
    read = await tab.replies.last.locator(".markdown-block").text_content()
    assert read is not None
    assert read.strip() == f"\N{COPYRIGHT SIGN} & & ; <b> \u2267\u0338 \u2233 A B {unknown} a\nb"
