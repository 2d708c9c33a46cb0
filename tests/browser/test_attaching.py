"""Files that go with a message: chosen, dropped and pasted; named the same after a reload."""

from __future__ import annotations

import base64

import pytest
from playwright.async_api import FilePayload, Locator, expect

from keryx.testing.modelserver import Reply
from tests.browser.people import Person, Tab
from tests.browser.stage import Stage

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.1", "page.4")]

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)

GIVE = """(field, [kind, name, type, data]) => {
  const transfer = new DataTransfer();
  const bytes = Uint8Array.from(atob(data), (char) => char.charCodeAt(0));
  transfer.items.add(new File([bytes], name, { type }));
  const event =
    kind === "paste"
      ? new ClipboardEvent("paste", { clipboardData: transfer, bubbles: true, cancelable: true })
      : new DragEvent("drop", { dataTransfer: transfer, bubbles: true, cancelable: true });
  field.dispatchEvent(event);
}"""


async def give(field: Locator, kind: str, name: str, media_type: str, data: bytes) -> None:
    """Drop or paste a file, as the browser tells the page of it."""
    await field.evaluate(GIVE, [kind, name, media_type, base64.b64encode(data).decode()])


async def test_files_are_chosen_dropped_and_pasted_and_keep_their_names(
    tab: Tab, stage: Stage
) -> None:
    part = stage.on("Look at these", Reply(text="I looked."))
    await tab.starts_anew()
    async with tab.page.expect_file_chooser() as choosing:
        await tab.button("Attach").click()
    notes = FilePayload(name="notes of today.txt", mimeType="text/plain", buffer=b"buy bread")
    await (await choosing.value).set_files(notes)
    await give(tab.box, "drop", "größe.csv", "text/csv", b"a,b\n1,2\n")
    await give(tab.box, "paste", "pixel.png", "image/png", PIXEL)
    attached = tab.page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await expect(attached).to_have_count(3)
    await expect(attached.nth(0)).to_contain_text("9 B")
    await give(tab.box, "drop", "mistake.txt", "text/plain", b"oops")
    await tab.button("Remove mistake.txt").click()
    await expect(attached).to_have_count(3)
    await tab.say("Look at these")
    await expect(tab.replies).to_have_text(["I looked."])
    sent = str((await part.asked()).body["messages"])
    for name in ("notes of today.txt", "größe.csv", "pixel.png"):
        assert name in sent
    for _ in range(2):
        message = tab.said.first
        await expect(
            message.get_by_role("link", name="Download notes of today.txt")
        ).to_be_visible()
        await expect(message.get_by_role("link", name="Download größe.csv")).to_be_visible()
        picture = message.get_by_role("img", name="pixel.png")
        await expect(picture).to_have_js_property("naturalWidth", 1)
        await tab.page.reload()
    async with tab.page.expect_download() as downloading:
        await tab.said.first.get_by_role("link", name="Download größe.csv").click()
    download = await downloading.value
    assert download.suggested_filename == "größe.csv"
    assert (await download.path()).read_bytes() == b"a,b\n1,2\n"


async def test_a_draft_keeps_its_files_over_a_reload(
    somebody: Person, tab: Tab, stage: Stage
) -> None:
    stage.on("Wait for a file", Reply(text="I wait."))
    stage.on("Here it is", Reply(text="Thanks."))
    await tab.begin("Wait for a file")
    await tab.settles()
    await tab.box.fill("Here it is")
    async with tab.page.expect_response(lambda answer: answer.url.endswith("/draft")):
        await give(tab.box, "drop", "kept.txt", "text/plain", b"kept")
    await tab.page.reload()
    attached = tab.page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await expect(attached).to_contain_text(["kept.txt"])
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["I wait.", "Thanks."])
    link = tab.said.last.get_by_role("link", name="Download kept.txt")
    await expect(link).to_be_visible()
    await expect(attached).to_have_count(0)


async def test_a_file_that_is_too_large_says_so_and_is_not_sent(
    somebody: Person, tab: Tab, stage: Stage
) -> None:
    somebody.watch.expects("413")
    somebody.watch.expects_outage()  # the server hangs up before it has read it all
    await tab.starts_anew()
    await tab.box.evaluate(
        """(field) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([new Uint8Array(26 << 20)], "huge.bin"));
          const told = { dataTransfer: transfer, bubbles: true, cancelable: true };
          field.dispatchEvent(new DragEvent("drop", told));
        }"""
    )
    attached = tab.page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await expect(attached).to_contain_text(["huge.bin"])
    await expect(attached).not_to_contain_text("uploading…")
    await expect(tab.button("Send")).to_be_disabled()
