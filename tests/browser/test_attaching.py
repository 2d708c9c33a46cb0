"""Files that go with a message: chosen, dropped and pasted; named the same after a reload."""

from __future__ import annotations

import asyncio
import base64
from typing import Self

import pytest
from playwright.async_api import FilePayload, Locator, Route, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.scripted_replies import PATIENCE, ScriptedReplies

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
    tab: Tab, stage: ScriptedReplies
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
    sent = str((await part.request()).body["messages"])
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
    somebody: Person, tab: Tab, stage: ScriptedReplies
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
    somebody: Person, tab: Tab, stage: ScriptedReplies
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
    await expect(attached).not_to_contain_text("Uploading…")
    await expect(tab.button("Send")).to_be_disabled()


class HeldUploads:
    """Uploads that wait on their way to the server until the test lets them go on."""

    def __init__(self, tab: Tab) -> None:
        self._page = tab.page
        self._waiting: asyncio.Queue[Route] = asyncio.Queue()

    async def __aenter__(self) -> Self:
        await self._page.route("**/api/uploads*", self._waiting.put)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._page.unroute("**/api/uploads*", self._waiting.put)

    async def next(self) -> Route:
        return await asyncio.wait_for(self._waiting.get(), PATIENCE)


@pytest.mark.promise("mended.17")
async def test_enter_while_a_file_is_uploading_sends_when_the_upload_is_done(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on("Read this slow one", Reply(text="Read."))
    await tab.starts_anew()
    async with HeldUploads(tab) as uploads:
        await give(tab.box, "drop", "slow.txt", "text/plain", b"slow")
        upload = await uploads.next()
        await tab.say("Read this slow one")
        await expect(
            tab.page.get_by_text("Keryx sends your message when the upload is done.")
        ).to_be_visible()
        await expect(tab.box).to_have_value("Read this slow one")
        await upload.continue_()
    await expect(tab.replies).to_have_text(["Read."])
    assert "slow.txt" in str((await part.request()).body["messages"])
    await expect(tab.box).to_have_value("")
    await expect(tab.said.first.get_by_role("link", name="Download slow.txt")).to_be_visible()


@pytest.mark.promise("mended.17")
async def test_a_message_that_waits_for_an_upload_can_be_taken_back(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on("Not this one", Reply(text="Sent by hand."))
    await tab.starts_anew()
    waits = tab.page.get_by_role("status").filter(has_text="Keryx sends")
    async with HeldUploads(tab) as uploads:
        await give(tab.box, "drop", "slow.txt", "text/plain", b"slow")
        upload = await uploads.next()
        await tab.say("Not this one")
        await expect(waits).to_be_visible()
        await tab.box.press("Escape")
        await expect(waits).to_be_hidden()
        await tab.box.press("Enter")
        await tab.box.press("End")
        await tab.box.press_sequentially(", but this")
        await expect(waits).to_be_hidden()
        await tab.button("Send").click()
        await tab.button("Cancel sending").click()
        await expect(waits).to_be_hidden()
        await upload.continue_()
    attached = tab.page.get_by_role("list", name="Attached files").get_by_role("listitem")
    await expect(attached).to_contain_text(["4 B"])
    await expect(tab.box).to_have_value("Not this one, but this")
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["Sent by hand."])
    sent = (await part.request()).body["messages"]
    assert len([message for message in sent if message["role"] == "user"]) == 1


async def test_a_text_that_waits_for_an_upload_and_was_typed_over_can_be_taken_back(
    tab: Tab, stage: ScriptedReplies
) -> None:
    for words in ("Begin before a file", "First without it"):
        stage.on(words, Reply(text=f"Answer to {words}."))
    await tab.begin("Begin before a file")
    await tab.settles()
    sent: asyncio.Queue[Route] = asyncio.Queue()
    await tab.page.route("**/api/sessions/*/messages", sent.put)
    await tab.say("First without it")
    message = await asyncio.wait_for(sent.get(), PATIENCE)
    async with HeldUploads(tab) as uploads:
        await give(tab.box, "drop", "slow.txt", "text/plain", b"slow")
        upload = await uploads.next()
        await tab.box.press("Control+A")
        await tab.page.keyboard.insert_text("Look at the file")
        await tab.page.keyboard.press("Enter")
        await tab.box.press("Control+A")
        await tab.page.keyboard.insert_text("not entered")
        await message.continue_()
        waits = tab.page.get_by_role("status").filter(has_text="Keryx sends")
        await expect(waits).to_be_visible()
        await expect(tab.box).to_have_value("not entered")
        await tab.page.keyboard.type(" yet")
        await expect(waits).to_be_visible()
        await tab.box.press("Escape")
        await expect(waits).to_be_hidden()
        await expect(tab.box).to_have_value("Look at the file\n\nnot entered yet")
        await upload.continue_()
    await expect(tab.replies.last).to_have_text("Answer to First without it.")
    await expect(tab.said).to_have_text(["Begin before a file", "First without it"])


@pytest.mark.promise("mended.17")
async def test_an_upload_that_fails_keeps_the_words_and_says_so(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    somebody.watch.expects_outage()
    stage.on("Read this lost one", Reply(text="There was no file."))
    await tab.starts_anew()
    async with HeldUploads(tab) as uploads:
        await give(tab.box, "drop", "lost.txt", "text/plain", b"lost")
        upload = await uploads.next()
        await tab.say("Read this lost one")
        await upload.abort()
    alert = tab.page.get_by_role("alert").filter(
        has_text="Your message was not sent. Your text is still here."
    )
    await expect(alert).to_contain_text("lost.txt was not uploaded")
    await expect(tab.box).to_have_value("Read this lost one")
    await tab.box.press("Enter")
    await expect(alert).to_be_visible()
    await tab.button("Remove lost.txt").click()
    await expect(alert).to_be_hidden()
    await tab.box.press("Enter")
    await expect(tab.replies).to_have_text(["There was no file."])
