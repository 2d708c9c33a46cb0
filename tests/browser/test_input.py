"""What a person puts into the message box that is not an ordinary message."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.22")]

PASTE = """([text]) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    document.getElementById("message").dispatchEvent(
        new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
}"""


async def test_a_large_paste_becomes_a_file(tab: Tab, house: House) -> None:
    await tab.starts_anew()
    await tab.box.fill("Read this: ")
    await tab.page.evaluate(PASTE, ["a long line of a log\n" * 400])
    files = tab.page.get_by_role("list", name="Attached files")
    await expect(files).to_contain_text("pasted text.txt")
    await expect(tab.box).to_have_value("Read this: ")
    house.stage.on("Read this: ", Reply(text="It is long."))
    await tab.box.press("Enter")
    await expect(tab.replies.last).to_have_text("It is long.")
    await expect(tab.said.last).to_contain_text("pasted text.txt")


async def test_a_message_that_is_too_long_says_so_and_opens_no_session(
    somebody: Person, tab: Tab
) -> None:
    await tab.starts_anew()
    before = len((await somebody.asks("/api/sessions"))["sessions"])
    await tab.page.evaluate(
        """() => {
            const field = document.getElementById("message");
            field.value = "x".repeat(1_000_001);
            field.dispatchEvent(new Event("input", { bubbles: true }));
        }"""
    )
    await tab.box.press("Enter")
    alert = tab.page.get_by_role("form", name="Message").get_by_role("alert")
    await expect(alert).to_contain_text("1,000,001 characters")
    assert len((await somebody.asks("/api/sessions"))["sessions"]) == before
    await alert.get_by_role("button", name="Attach as a file").click()
    await expect(tab.box).to_have_value("")
    await expect(tab.page.get_by_role("list", name="Attached files")).to_contain_text("1.0 MB")


async def test_a_command_of_ones_own_shows_its_output(tab: Tab) -> None:
    await tab.starts_anew()
    await tab.say("!echo seen at once")
    result = tab.call("terminal").get_by_role("group", name="Result")
    await expect(result).to_contain_text("seen at once")
