"""Beside the transcript: one call whole, files, changes and the way back, what the model knows."""

from __future__ import annotations

import struct
import zlib
from collections.abc import AsyncGenerator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.command_gate import gate
from tests.browser.conftest import House
from tests.browser.fan_out import fan
from tests.browser.test_asking import begins_carefully

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.5")]


def inspector(tab: Tab) -> Locator:
    return tab.page.get_by_role("complementary", name="Inspector")


def fact(tab: Tab, name: str) -> Locator:
    """What is told of the chosen call under this word."""
    terms = inspector(tab).get_by_role("term").filter(has_text=name)
    return terms.locator("xpath=following-sibling::dd[1]")


async def turns_to(tab: Tab, name: str) -> None:
    await tab.opens_inspector()
    await inspector(tab).get_by_role("tab", name=name).click()
    await expect(inspector(tab).get_by_role("tabpanel", name=name)).to_be_visible()


def picture(width: int, height: int) -> bytes:
    """A PNG in one colour."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    lines = zlib.compress((b"\0" + b"\x9a\x4f\x1d" * width) * height)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


@pytest_asyncio.fixture(loop_scope="module")
async def narrow(chromium: Browser, house: House) -> AsyncGenerator[Tab]:
    """Where there is no room beside the transcript."""
    size = {"width": 900, "height": 900}
    async with person(chromium, house.served.url, state=house.state, viewport=size) as somebody:
        yield await somebody.opens()


async def test_a_call_is_seen_whole_by_its_bar_while_it_runs_and_when_it_is_over(
    tab: Tab, house: House
) -> None:
    with fan(house.served.workspace, "whole") as whole:
        house.stage.on("Show it whole", Reply(calls=(whole.call,)), Reply(text="Shown."))
        await tab.begin("Show it whole")
        await expect(tab.replies.first).to_contain_text("11 done")
        await expect(inspector(tab)).to_contain_text("click its bar in the transcript")
        await tab.button("Details of execute_code").click()
        await expect(fact(tab, "Tool")).to_have_text("execute_code")
        await expect(fact(tab, "State")).to_contain_text("Running")
        await expect(fact(tab, "Where")).to_contain_text(str(house.served.workspace))
        arguments = inspector(tab).get_by_role("group", name="Arguments")
        await expect(arguments).to_contain_text("from keryx_tools import parallel, terminal")
        nested = inspector(tab).get_by_role("group", name="Nested calls")
        await expect(nested).to_contain_text("11/13")
        whole.first.open()
        await expect(nested).to_contain_text("12/13")
        whole.second.open()
        await expect(tab.replies.last).to_have_text("Shown.")
    await expect(fact(tab, "State")).to_contain_text("Done in")
    result = inspector(tab).get_by_role("group", name="Result")
    await expect(result.locator("pre")).to_contain_text("region-0\nregion-1\n")
    await expect(inspector(tab).get_by_role("group", name="Nested calls")).to_contain_text("13/13")


async def test_the_keyboard_chooses_a_call_reads_its_output_and_cancels_it(
    tab: Tab, house: House
) -> None:
    with gate(house.served.workspace, "typed") as typed:
        house.stage.on("Print a little", Reply(calls=(typed.call("so far"),)), Reply(text="Cut."))
        await tab.begin("Print a little")
        await expect(tab.printed("terminal")).to_have_text("so far")
        await tab.button("Details of terminal").press("Enter")
        await expect(fact(tab, "Tool")).to_have_text("terminal")
        output = inspector(tab).get_by_role("group", name="Output so far")
        await expect(output.locator("pre")).to_have_text("so far\n")
        await inspector(tab).get_by_role("button", name="Cancel this call").press("Enter")
        await expect(fact(tab, "State")).to_contain_text("Cancelled by you")
        await expect(tab.replies.last).to_have_text("Cut.")


async def test_a_call_that_waits_says_for_whom(tab: Tab, house: House) -> None:
    house.stage.on(
        "Wait for me",
        Reply(calls=(Call("terminal", {"command": "touch waited-for"}),)),
        Reply(text="No longer."),
    )
    await begins_carefully(tab, "Wait for me")
    await expect(tab.asks).to_be_visible()
    await tab.button("Details of terminal").click()
    await expect(fact(tab, "State")).to_have_text("Waiting for you")
    await expect(fact(tab, "Waiting for")).to_have_text("you")
    await tab.asks.get_by_role("button", name="Deny").click()
    await expect(fact(tab, "State")).to_contain_text("Denied")
    await expect(fact(tab, "Waiting for")).to_have_count(0)


async def test_files_are_walked_and_shown_as_text_and_as_pictures(tab: Tab, house: House) -> None:
    folder = house.served.workspace / "gallery"
    folder.mkdir()
    (folder / "about.md").write_text("# A rust red square\n")
    (folder / "square.png").write_bytes(picture(40, 30))
    (folder / "noise.bin").write_bytes(bytes(range(256)))
    house.stage.on("Look around", Reply(text="Looked."))
    await tab.begin("Look around")
    await tab.settles()
    await turns_to(tab, "Files")
    panel = inspector(tab).get_by_role("tabpanel")
    await panel.get_by_role("button", name="gallery/").click()
    await panel.get_by_role("button", name="about.md").click()
    await expect(panel.locator("pre")).to_have_text("# A rust red square\n")
    path = panel.get_by_role("navigation", name="Folder")
    await path.get_by_role("button", name="gallery").press("Enter")
    await panel.get_by_role("button", name="square.png").press("Enter")
    image = panel.get_by_role("img", name="gallery/square.png")
    await expect(image).to_be_visible()
    assert await image.evaluate("(img) => img.decode().then(() => img.naturalWidth)") == 40
    await path.get_by_role("button", name="gallery").click()
    await panel.get_by_role("button", name="noise.bin").click()
    await expect(panel).to_contain_text("This file is not text, so it is not shown.")
    await path.get_by_role("button", name="Workspace").click()
    await expect(panel.get_by_role("button", name="gallery/")).to_be_visible()


async def test_changes_are_a_diff_and_a_revert_brings_back_what_was_on_the_disk(
    somebody: Person, tab: Tab, house: House
) -> None:
    workspace = house.served.workspace
    (workspace / "kept.txt").write_text("one\ntwo\n")
    patch = "*** Begin Patch\n*** Update File: kept.txt\n@@\n one\n-two\n+2\n*** End Patch\n"
    calls = (
        Call("patch", {"patch": patch}),
        Call("write_file", {"path": "added.txt", "content": "new\n"}),
    )
    house.stage.on("Change two files", Reply(calls=calls), Reply(text="Changed."))
    await tab.begin("Change two files")
    await expect(tab.replies.last).to_have_text("Changed.")
    await turns_to(tab, "Changes")
    panel = inspector(tab).get_by_role("tabpanel")
    await expect(panel).to_contain_text("2 files changed")
    diff = panel.get_by_label("Diff of kept.txt")
    await expect(diff).to_contain_text("\N{MINUS SIGN}two")
    await expect(diff).to_contain_text("+2")
    assert (workspace / "kept.txt").read_text() == "one\n2\n"

    # One of the two, chosen with the keyboard.
    await panel.get_by_role("checkbox", name="Select kept.txt").press("Space")
    await panel.get_by_role("button", name="Revert 1 file").press("Enter")
    dialog = tab.page.get_by_role("dialog", name="Revert 1 file?")
    await expect(dialog).to_contain_text("kept.txt")
    await dialog.get_by_role("button", name="Revert").press("Enter")
    await expect(dialog).to_be_hidden()
    await expect(panel.get_by_role("region", name="kept.txt")).to_contain_text("Same as before")
    await expect(panel).to_contain_text("1 file changed")
    assert (workspace / "kept.txt").read_text() == "one\ntwo\n"

    # The other has become somebody's own since, and is left alone.
    (workspace / "added.txt").write_text("mine\n")
    somebody.watch.expects("409")
    await panel.get_by_role("button", name="Revert all").click()
    dialog = tab.page.get_by_role("dialog", name="Revert 1 file?")
    await dialog.get_by_role("button", name="Revert").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("added.txt")
    await tab.page.keyboard.press("Escape")
    await expect(panel.get_by_role("button", name="Revert all")).to_be_focused()
    assert (workspace / "added.txt").read_text() == "mine\n"


async def test_what_the_model_is_told_is_there_to_be_read(tab: Tab, house: House) -> None:
    (house.served.workspace / "AGENTS.md").write_text("Always answer in verse.\n")
    house.stage.on("What do you know", Reply(text="A little."))
    await tab.begin("What do you know")
    await tab.settles()
    await turns_to(tab, "Context")
    panel = inspector(tab).get_by_role("tabpanel")
    await expect(panel.get_by_role("group", name="Context used")).to_contain_text("10")
    tools = panel.get_by_role("group", name="tools")
    await expect(tools.get_by_role("listitem").filter(has_text="execute_code")).to_have_count(1)
    prompt = panel.get_by_role("group", name="Prompt")
    for part in await prompt.get_by_role("button", expanded=False).all():
        await part.press("Enter")
        await expect(prompt.locator("pre").last).to_be_visible()
    await expect(prompt).to_contain_text("Always answer in verse.")
    await expect(prompt).to_contain_text("characters")


async def test_where_there_is_no_room_it_lies_over_and_gives_the_focus_back(
    narrow: Tab, house: House
) -> None:
    house.stage.on(
        "Run in a small window",
        Reply(calls=(Call("terminal", {"command": "echo small"}),)),
        Reply(text="Ran."),
    )
    await narrow.begin("Run in a small window")
    await narrow.settles()
    await expect(inspector(narrow)).to_be_hidden()
    bar = narrow.button("Details of terminal")
    await bar.press("Enter")
    await expect(inspector(narrow).get_by_role("tab", name="Call")).to_be_focused()
    await narrow.page.keyboard.press("ArrowRight")
    await expect(inspector(narrow).get_by_role("tabpanel", name="Files")).to_be_visible()
    await narrow.page.keyboard.press("Escape")
    await expect(inspector(narrow)).to_be_hidden()
    await expect(bar).to_be_focused()
