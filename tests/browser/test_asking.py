"""Approvals and questions: answered in one tab they are gone in the other."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from keryx.testing.modelserver import Call, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.conftest import House

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.6")]

ASK = "Ask before every change"


async def begins_carefully(tab: Tab, words: str) -> None:
    """Open a session that asks before it changes anything."""
    await tab.starts_anew()
    await tab.shows_more()
    await tab.page.get_by_role("combobox", name="Approvals").select_option(label=ASK)
    await tab.say(words)
    await expect(tab.said.first).to_have_text(words)


@pytest.mark.promise("004.14")
async def test_an_approval_given_in_one_tab_is_gone_in_the_other(
    somebody: Person, tab: Tab, house: House
) -> None:
    house.stage.on(
        "Make a file",
        Reply(calls=(Call("terminal", {"command": "touch made-here"}),)),
        Reply(text="It is made."),
    )
    await begins_carefully(tab, "Make a file")
    other = await somebody.opens(tab.page.url)
    for browser_tab in (tab, other):
        ask = browser_tab.asks.get_by_role("group", name="Allow terminal?")
        await expect(ask).to_contain_text("touch made-here")
        await expect(browser_tab.call("terminal")).to_contain_text("Waiting for you")
    assert not (house.served.workspace / "made-here").exists()
    await other.asks.get_by_role("button", name="Allow once").press("Enter")
    for browser_tab in (other, tab):
        await browser_tab.looks_here()
        await expect(browser_tab.asks).to_be_hidden()
        await expect(browser_tab.replies.last).to_have_text("It is made.")
    assert (house.served.workspace / "made-here").exists()


async def test_a_denied_call_is_shown_as_denied(somebody: Person, tab: Tab, house: House) -> None:
    house.stage.on(
        "Make what nobody wants",
        Reply(calls=(Call("terminal", {"command": "touch unwanted"}),)),
        Reply(text="Then not."),
    )
    await begins_carefully(tab, "Make what nobody wants")
    other = await somebody.opens(tab.page.url)
    await expect(other.asks).to_be_visible()
    await other.asks.get_by_role("button", name="Deny").click()
    await expect(other.asks).to_be_hidden()
    await other.page.reload()
    for browser_tab in (other, tab):
        await browser_tab.looks_here()
        await expect(browser_tab.replies.last).to_have_text("Then not.")
        await expect(browser_tab.call("terminal")).to_contain_text("Denied")
        await expect(browser_tab.asks).to_be_hidden()
    assert not (house.served.workspace / "unwanted").exists()


async def test_consent_for_the_session_is_not_asked_for_again(tab: Tab, house: House) -> None:
    house.stage.on(
        "Make two files",
        Reply(calls=(Call("terminal", {"command": "touch one-of-two"}),)),
        Reply(calls=(Call("terminal", {"command": "touch two-of-two"}),)),
        Reply(text="Both are made."),
    )
    await begins_carefully(tab, "Make two files")
    await tab.asks.get_by_role("button", name="Allow for this session").click()
    await expect(tab.replies.last).to_have_text("Both are made.")
    assert (house.served.workspace / "two-of-two").exists()


async def test_a_question_is_answered_in_words_and_gone_in_the_other_tab(
    somebody: Person, tab: Tab, house: House
) -> None:
    question = "What shall it be called?"
    part = house.stage.on(
        "Ask me for a name",
        Reply(calls=(Call("clarify", {"question": question, "choices": ["Ada", "Bo"]}),)),
        Reply(text="Ida it is."),
    )
    await tab.begin("Ask me for a name")
    other = await somebody.opens(tab.page.url)
    await expect(other.asks.get_by_role("form", name=question)).to_be_visible()
    await expect(other.asks.get_by_role("button", name="Ada")).to_be_visible()
    await tab.looks_here()
    field = tab.asks.get_by_role("textbox", name="Answer")
    await field.fill("Ida, <b>please</b>")
    await field.press("Enter")
    for browser_tab in (tab, other):
        await browser_tab.looks_here()
        await expect(browser_tab.replies.last).to_have_text("Ida it is.")
        await expect(browser_tab.asks).to_be_hidden()
    assert "Ida, <b>please</b>" in str((await part.request(2)).body["messages"][-1])


async def test_stopping_a_turn_takes_back_what_it_asked(tab: Tab, house: House) -> None:
    house.stage.on("Ask and wait", Reply(calls=(Call("clarify", {"question": "Well?"}),)))
    await tab.begin("Ask and wait")
    await expect(tab.asks).to_be_visible()
    await tab.stop.click()
    await expect(tab.asks).to_be_hidden()
    await expect(tab.transcript.get_by_text("Stopped by you")).to_be_visible()
