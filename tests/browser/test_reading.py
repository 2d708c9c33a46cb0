"""Reading a transcript: edits as diffs, where the eye stays, quiet lines, and what a session is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, expect

from keryx.testing.modelserver import MODEL, Call, ModelServer, ReceivedRequest, RefusedError, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.1", "page.4")]

LONG = "\n\n".join(f"Paragraph {number} of a long story." for number in range(300))
MENDED = """\
*** Begin Patch
*** Update File: poem.txt
@@
 roses are red
-violets are blue
+violets are violet
*** End Patch
"""
CONFIG = """\
model = "one:{model}"

[providers.one]
base_url = "{one}"
api_key = "sk-of-one"

[providers.two]
base_url = "{two}"
api_key = "sk-of-two"

[models]
fallback = ["two:{model}"]

[profiles.work]
model = "two:{model}"

[profiles.work.personalities]
formal = "Be formal."
"""


@pytest_asyncio.fixture(loop_scope="module")
async def fallen_back(
    chromium: Browser, tmp_path: Path
) -> AsyncGenerator[tuple[Person, Tab, ModelServer]]:
    """Somebody whose first model refuses them, so that the second answers."""

    def refuse(request: ReceivedRequest) -> Reply:
        raise RefusedError("the key has expired", code="invalid_api_key")

    stage = ScriptedReplies()
    async with (
        ModelServer(refuse, key="sk-of-none") as one,
        ModelServer(stage.answer, key="sk-of-two") as two,
    ):
        stage.on("Who answers?", Reply(text="The second."))
        stage.on("And at work?", Reply(text="Very well."))
        served = PageServer(tmp_path, None)
        served.configure(CONFIG.format(model=MODEL, one=one.url, two=two.url))
        await served.start()
        try:
            async with person(chromium, served.url) as somebody:
                tab = await somebody.opens(served.link)
                await expect(tab.box).to_be_visible()
                yield somebody, tab, two
        finally:
            await served.stop()


async def test_an_edit_is_shown_as_what_it_takes_out_and_puts_in(tab: Tab, house: House) -> None:
    (house.served.workspace / "poem.txt").write_text("roses are red\nviolets are blue\n")
    mend = Call("patch", {"patch": MENDED})
    house.stage.on("Mend the poem", Reply(calls=(mend,)), Reply(text="It is mended."))
    await tab.begin("Mend the poem")
    await expect(tab.replies.last).to_have_text("It is mended.")
    call = tab.call("patch")
    await call.get_by_role("button", expanded=False).click()
    diff = call.get_by_label("Diff of poem.txt")
    await expect(diff.locator(".is-remove")).to_contain_text("violets are blue")
    await expect(diff.locator(".is-add")).to_contain_text("violets are violet")
    assert "violets are violet" in (house.served.workspace / "poem.txt").read_text()


async def test_who_reads_above_stays_there_and_who_is_at_the_end_follows(
    chromium: Browser, house: House
) -> None:
    story = Reply(text=LONG, chunk=400, fault="hang mid-stream", after=10)
    part = house.stage.on("Tell me a story", story)
    low = {"viewport": {"width": 1000, "height": 500}}
    async with person(chromium, house.served.url, state=house.state, **low) as somebody:
        tab = await somebody.opens()
        await tab.say("Tell me a story")
        held = await part.held()
        paragraphs = tab.replies.last.locator("p")
        await expect(tab.replies.last).to_contain_text("Paragraph 100 of")
        await expect(paragraphs.last).to_be_in_viewport()
        above = tab.transcript.get_by_text("Paragraph 20 of")
        await above.scroll_into_view_if_needed()
        before = await above.bounding_box()
        held.resume.set()
        await tab.settles()
        await expect(tab.replies.last).to_contain_text("Paragraph 299 of")
        assert await above.bounding_box() == before
        await expect(paragraphs.last).not_to_be_in_viewport()


async def test_a_fallback_is_a_quiet_line_that_stays_and_a_profile_brings_its_own(
    fallen_back: tuple[Person, Tab, ModelServer],
) -> None:
    somebody, tab, two = fallen_back
    await tab.begin("Who answers?")
    await expect(tab.replies.last).to_have_text("The second.")
    line = tab.transcript.get_by_role("paragraph").filter(has_text=f"two:{MODEL}")
    await expect(line).to_be_visible()
    said = await line.inner_text()
    await tab.page.reload()
    await expect(line).to_have_text(said)

    await tab.starts_anew()
    fields = tab.page.get_by_role("main")
    await tab.shows_more()
    await fields.get_by_role("combobox", name="Profile").select_option("work")
    await fields.get_by_role("combobox", name="Personality").select_option("formal")
    await fields.get_by_role("combobox", name="Effort").select_option("low")
    await tab.say("And at work?")
    await expect(tab.replies).to_have_text(["Very well."])
    settings = (await somebody.asks(f"/api/sessions/{tab.session_id}"))["settings"]
    chosen = {name: settings[name] for name in ("profile", "personality", "effort", "model")}
    assert chosen == {
        "profile": "work",
        "personality": "formal",
        "effort": "low",
        "model": f"two:{MODEL}",
    }
    body = [request.body for request in two.asked if request.body.get("tools")][-1]
    assert "Be formal." in body["messages"][0]["content"]
    assert body["reasoning_effort"] == "low"
