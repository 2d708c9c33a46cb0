"""The first visit, by the link that `keryx serve` prints, and the first messages."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest
from playwright.async_api import Browser, Route, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.1")]


async def test_the_printed_link_logs_in_once(chromium: Browser, own_house: House) -> None:
    served = own_house.served
    async with person(chromium, served.url) as first:
        tab = await first.opens(served.link)
        await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
        assert "token" not in tab.page.url
        again = await first.opens()
        await expect(again.box).to_be_visible()
    async with person(chromium, served.url) as second:
        second.watch.expects("401")
        late = await second.opens(served.link)
        form = late.page.get_by_role("form", name="Sign in to Keryx")
        await expect(form.get_by_role("alert")).to_contain_text("This link was already used")
        assert "token" not in late.page.url
        await expect(late.box).to_be_hidden()


async def test_a_page_that_is_left_before_it_is_let_in_has_not_used_up_the_link(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    answered = asyncio.Event()

    async def lose(route: Route) -> None:
        """The server takes it, and nobody hears of the answer."""
        request = route.request
        headers = {"content-type": "application/json", "origin": served.url.rstrip("/")}
        async with (
            aiohttp.ClientSession() as http,
            http.post(request.url, data=request.post_data, headers=headers) as answer,
        ):
            assert answer.status == 204
        answered.set()
        await route.abort()

    async with person(chromium, served.url) as first:
        first.watch.expects("401")
        first.watch.expects_outage()
        await first.context.route("**/api/login", lose)
        tab = await first.opens(served.link)
        await answered.wait()
        await first.context.unroute("**/api/login")
        await tab.page.reload()
        await expect(tab.box).to_be_visible()
        assert "token" not in tab.page.url
        assert await tab.page.evaluate("Object.keys(localStorage)") == []
    async with person(chromium, served.url) as second:
        second.watch.expects("401")
        late = await second.opens(served.link)
        form = late.page.get_by_role("form", name="Sign in to Keryx")
        await expect(form.get_by_role("alert")).to_contain_text("This link was already used")
        await expect(late.box).to_be_hidden()


@pytest.mark.promise("mended.19")
async def test_the_link_works_in_the_tab_that_asks_for_a_login(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    async with person(chromium, served.url) as somebody:
        somebody.watch.expects("401")
        tab = await somebody.opens()
        form = tab.page.get_by_role("form", name="Sign in to Keryx")
        await expect(form).to_be_visible()
        await tab.page.evaluate("window.__same = true")
        await tab.page.goto(f"{served.url}#token=nothing")
        await expect(form.get_by_role("alert")).to_contain_text("This link was already used")
        await tab.page.goto(served.link)
        await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
        assert "token" not in tab.page.url
        # Whoever is in stays in, whatever link is opened.
        await tab.page.goto(f"{served.url}#token=nothing")
        await expect(tab.page).to_have_url(served.url)
        await expect(tab.box).to_be_visible()
        await expect(form).to_be_hidden()
        assert await tab.page.evaluate("window.__same"), "only what stands behind the # changed"


@pytest.mark.promise("mended.19")
async def test_the_whole_link_can_be_pasted_as_the_token(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    async with person(chromium, served.url) as somebody:
        somebody.watch.expects("401")
        tab = await somebody.opens()
        form = tab.page.get_by_role("form", name="Sign in to Keryx")
        await form.get_by_role("textbox", name="Token").fill(f" {served.link} ")
        await form.get_by_role("button", name="Sign in").click()
        await expect(tab.box).to_be_visible()


async def test_without_a_login_there_is_nothing_but_the_login(
    chromium: Browser, own_house: House
) -> None:
    served = own_house.served
    token = served.link.partition("#token=")[2]
    async with person(chromium, served.url) as stranger:
        stranger.watch.expects("401")
        tab = await stranger.opens()
        form = tab.page.get_by_role("form", name="Sign in to Keryx")
        await form.get_by_role("textbox", name="Token").fill("wrong")
        await form.get_by_role("button", name="Sign in").click()
        await expect(form.get_by_role("alert")).to_have_text(
            "The token or password is wrong. Check it and try again."
        )
        await form.get_by_role("textbox", name="Token").fill(token)
        await form.get_by_role("button", name="Sign in").click()
        await expect(tab.box).to_be_visible()
        await tab.button("Sign out").click()
        await expect(form).to_be_visible()
        await tab.page.reload()
        await expect(form).to_be_visible()


async def test_a_first_message_opens_a_session_streams_and_settles(
    tab: Tab, stage: ScriptedReplies
) -> None:
    part = stage.on(
        "Good morning",
        Reply(text="Good morning to you too.", chunk=4, fault="hang mid-stream", after=4),
    )
    await tab.begin("Good morning")
    held = await part.held()
    reply = tab.replies.first
    await expect(reply).to_have_text("Good morning")
    await expect(reply).to_have_attribute("aria-busy", "true")
    await expect(tab.stop).to_be_visible()
    held.resume.set()
    await expect(reply).to_have_text("Good morning to you too.")
    await expect(reply).to_have_attribute("aria-busy", "false")
    await tab.settles()
    await expect(tab.box).to_have_value("")
    await expect(tab.box).to_be_focused()
    await expect(tab.page).to_have_title("Good morning · Keryx")


MARKDOWN = """# Results

Some **strong** and `plain` words, and [a link](https://example.org/).

| name | count |
|:-----|------:|
| one  |     1 |
| two  |    22 |

```python
def double(n: int) -> int:
    return 2 * n
```

1. first
2. second
"""


async def test_a_reply_is_shown_as_markdown(
    somebody: Person, tab: Tab, stage: ScriptedReplies
) -> None:
    await somebody.context.grant_permissions(["clipboard-read", "clipboard-write"])
    stage.on("Tell the results", Reply(text=MARKDOWN, chunk=7))
    await tab.begin("Tell the results")
    await tab.settles()
    reply = tab.replies.first
    await expect(reply.get_by_role("heading", name="Results", level=1)).to_be_visible()
    await expect(reply.get_by_role("cell", name="22")).to_be_visible()
    await expect(reply.get_by_role("row")).to_have_count(3)
    await expect(reply.get_by_role("listitem")).to_have_text(["first", "second"])
    link = reply.get_by_role("link", name="a link")
    await expect(link).to_have_attribute("rel", "noopener noreferrer")
    await expect(reply.locator("strong")).to_have_text("strong")
    code = reply.get_by_role("figure")
    await expect(code).to_contain_text("def double(n: int) -> int:\n    return 2 * n")
    await code.get_by_role("button", name="Copy").click()
    await expect(code.get_by_role("button", name="Copied")).to_be_visible()
    copied = await tab.page.evaluate("navigator.clipboard.readText()")
    assert copied == "def double(n: int) -> int:\n    return 2 * n"


async def test_reasoning_is_folded_until_it_is_wanted(tab: Tab, stage: ScriptedReplies) -> None:
    stage.on("Think first", Reply(reasoning="Let me see: four.", text="It is 4."))
    await tab.begin("Think first")
    await tab.settles()
    await expect(tab.replies.first).to_contain_text("It is 4.")
    fold = tab.replies.first.get_by_role("button", name="Reasoning")
    await expect(fold).to_have_attribute("aria-expanded", "false")
    await expect(tab.transcript.get_by_text("Let me see: four.")).to_be_hidden()
    await fold.press("Enter")
    await expect(tab.transcript.get_by_text("Let me see: four.")).to_be_visible()
