"""Text of a person or a model is shown in its own direction wherever it stands."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Tab
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.test_asking import begins_carefully

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.3")]

WRONG = """() => {
  const ARABIC = /[\\u0600-\\u06ff]/;
  const begins = (text) => ARABIC.test(text.match(/\\p{L}/u)?.[0] ?? "");
  const own = (element) => [...element.childNodes]
    .filter((node) => node.nodeType === Node.TEXT_NODE).map((node) => node.data).join("");
  const isField = (element) => element.matches("textarea, input");
  const text = (element) => isField(element) ? element.value : own(element);
  const finds = (element) => {
    // Code is read from left to right; a language of its own stands in its words.
    const around = isField(element) ? element : element.closest("bdi, [dir]");
    const isAuto = around?.matches("bdi, [dir=auto], pre[dir]") ?? false;
    return isAuto || getComputedStyle(element).unicodeBidi === "plaintext";
  };
  return [...document.body.querySelectorAll("*")]
    .filter((element) => element.checkVisibility() && !element.closest("option, .text-hidden"))
    .filter((element) => begins(text(element)) && !finds(element))
    .map((element) => element.outerHTML.slice(0, 160));
}"""


async def expect_own_directions(page: Page, *words: str) -> None:
    """These words are on the screen, and all there in Arabic has its own direction."""
    for text in words:
        await expect(page.get_by_text(text).locator("visible=true").first).to_be_visible()
    assert await page.evaluate(WRONG) == []


async def test_a_session_in_arabic_shows_every_text_from_right_to_left(
    tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "arabic") as held:
        todo = Call("todo", {"items": [{"text": "اقرأ الملف", "status": "doing"}]})
        ask = Call("clarify", {"question": "ما الاسم؟", "choices": ["سلمى", "علي"]})
        write = Call("write_file", {"path": "ملف.txt", "content": "مرحبا"})
        search = Call("search_files", {"pattern": "مرحبا", "path": "."})
        house.stage.on(
            "مرحبا بالعالم",
            Reply(text="حسنا.", calls=(todo, write, search)),
            Reply(calls=(held.call("جاهز"),)),
            Reply(calls=(ask,)),
            Reply(text="تم."),
        )
        house.stage.on("رسالة أخرى", Reply(text="نعم."))
        await tab.begin("مرحبا بالعالم")
        title = tab.page.get_by_role("heading", name="مرحبا بالعالم")
        await expect(title).to_be_visible()
        await expect(tab.printed("terminal")).to_have_text("جاهز")
        await expect_own_directions(tab.page, "اقرأ الملف", "مرحبا")
        await tab.say("رسالة أخرى")
        await tab.box.fill("مسودة")
        await expect_own_directions(tab.page, "رسالة أخرى")
        await tab.queue.get_by_role("button", name="Edit").click()
        await expect(tab.page.get_by_role("textbox", name="Queued message")).to_be_focused()
        await expect_own_directions(tab.page)
        await tab.page.keyboard.press("Escape")
        held.open()
    await expect(tab.asks).to_contain_text("ما الاسم؟")
    answer = tab.asks.get_by_role("textbox", name="Answer")
    await answer.fill("ليلى")
    await expect_own_directions(tab.page, "سلمى")
    await answer.press("Enter")
    await expect(tab.replies.last).to_have_text("نعم.")
    await tab.settles()
    await looks_around(tab)


async def looks_around(tab: Tab) -> None:
    """Through the inspector, the settings of the session, its tags, the search and the replay."""
    await tab.call("write_file").get_by_role("button", expanded=False).click()
    await tab.call("search_files").get_by_role("button", name="Details").click()
    await tab.opens_inspector()
    inspector = tab.page.get_by_role("complementary", name="Inspector")
    for name in ("Call", "Files", "Changes", "Context"):
        await inspector.get_by_role("tab", name=name).click()
        if name in ("Files", "Changes"):
            await expect(inspector.get_by_text("ملف.txt").first).to_be_visible()
        await expect_own_directions(tab.page)
    await tab.button("Session settings").click()
    await expect_own_directions(tab.page)
    await tab.page.keyboard.press("Escape")
    await tab.choose("مرحبا بالعالم", "Rename")
    await expect_own_directions(tab.page)
    await tab.page.keyboard.press("Escape")
    await tab.choose("مرحبا بالعالم", "Tags")
    dialog = tab.page.get_by_role("dialog", name="Tags")
    await dialog.get_by_role("textbox").fill("عمل")
    await expect_own_directions(tab.page)
    await dialog.get_by_role("button", name="Add").click()
    await dialog.get_by_role("button", name="Save").click()
    await expect_own_directions(tab.page, "عمل")
    await tab.page.keyboard.press("Control+k")
    await tab.page.keyboard.type("رسالة")
    await expect(tab.page.locator(".search-dialog-hits mark").first).to_be_visible()
    await expect_own_directions(tab.page)
    await tab.page.keyboard.press("Escape")
    await tab.said.first.hover()
    await tab.transcript.get_by_role("button", name="Actions for this turn").first.click()
    await tab.button("Replay this turn").click()
    replay = tab.page.get_by_role("dialog", name="Replay")
    await replay.get_by_role("button", name="Last", exact=True).click()
    await expect_own_directions(tab.page)


async def test_an_approval_in_arabic_is_shown_from_right_to_left(tab: Tab, house: House) -> None:
    command = Call("terminal", {"command": "rm -rf غير-موجود"})
    server = Call("delegate", {"task": "اكتب قصة"})
    house.stage.on("احذف الملف", Reply(calls=(command, server)), Reply(text="لا."))
    await begins_carefully(tab, "احذف الملف")
    await expect(tab.asks).to_contain_text("غير-موجود")
    await expect_own_directions(tab.page)
    await tab.stop.click()
    await tab.settles()
    await expect_own_directions(tab.page)
