"""The first steps to a model: one on this machine with a click, or a key that is tried at once."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from keryx.testing.modelserver import MODEL, ModelServer, Reply
from tests.browser.browser_user import Person, Tab
from tests.browser.empty_home import look_at, newcomer

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page.8")]

KEY = "sk-right-0123456789"
CHOICE = "(select, name) => [...select.options].find((each) => each.value.endsWith(name)).value"
"""Which of the choices is the model of that name, whatever its server is called."""


@pytest_asyncio.fixture(loop_scope="module")
async def provider() -> AsyncGenerator[ModelServer]:
    """Lets in only those that have the key."""
    async with ModelServer(lambda _: Reply(text="From the real one."), key=KEY) as models:
        yield models


@pytest_asyncio.fixture(loop_scope="module")
async def fresh(chromium: Browser, tmp_path: Path) -> AsyncGenerator[tuple[Person, Tab]]:
    """Somebody who has left the tour to begin in earnest."""
    async with newcomer(chromium, tmp_path) as (_, somebody, tab):
        await expect(tab.said).to_have_text(["Show me."])
        await tab.stop.click()
        await tab.settles()
        yield somebody, tab


async def to_start(tab: Tab) -> Locator:
    await tab.list.get_by_role("button", name="New session", exact=True).first.click()
    await expect(tab.page.get_by_role("heading", name="Welcome to Keryx")).to_be_visible()
    return tab.page.get_by_role("form", name="Add an API key")


async def test_a_wrong_key_is_explained_and_the_right_one_works_at_once(
    fresh: tuple[Person, Tab], provider: ModelServer, tmp_path: Path
) -> None:
    somebody, tab = fresh
    somebody.watch.expects("422")
    form = await to_start(tab)
    await look_at(tab, "welcome", form.get_by_role("button"), tmp_path)
    await form.get_by_role("combobox", name="Provider").select_option("other")
    await form.get_by_role("textbox", name="Base URL").fill(provider.url)
    key = form.get_by_role("textbox", name="API key")
    await key.fill("sk-wrong-0123456789")
    await key.press("Enter")
    trouble = form.get_by_role("alert")
    await expect(trouble).to_contain_text("The model's provider refused the API key")
    await expect(trouble).to_contain_text("check the key")
    await look_at(tab, "wrong-key", trouble, tmp_path)
    await key.fill(KEY)
    await form.get_by_role("button", name="Test and save").click()
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await expect(tab.page.get_by_role("main")).to_contain_text(f"{MODEL} is ready.")
    assert KEY not in await tab.page.content()
    storage = await tab.page.evaluate(
        "JSON.stringify([{ ...localStorage }, { ...sessionStorage }])"
    )
    assert KEY not in storage
    await tab.say("Are you real?")
    await expect(tab.replies).to_have_text(["From the real one."])
    await expect(tab.page.get_by_role("region", name="Take the tour")).to_be_hidden()


async def test_from_the_tour_a_key_leads_to_a_session_with_a_real_model(
    fresh: tuple[Person, Tab], provider: ModelServer
) -> None:
    _, tab = fresh
    await tab.button("Use a real model").click()
    dialog = tab.page.get_by_role("dialog", name="Choose a model")
    form = dialog.get_by_role("form", name="Add an API key")
    await form.get_by_role("textbox", name="Base URL").fill(provider.url)
    await form.get_by_role("textbox", name="API key").fill(KEY)
    await form.get_by_role("textbox", name="Model").fill(MODEL)
    await form.get_by_role("button", name="Test and save").click()
    await expect(dialog.get_by_role("status")).to_contain_text("is ready.")
    await dialog.get_by_role("button", name="New session with this model").click()
    await expect(tab.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
    await tab.say("Are you real?")
    await expect(tab.replies).to_have_text(["From the real one."])


async def test_what_was_said_with_no_model_goes_on_once_there_is_one(
    fresh: tuple[Person, Tab], provider: ModelServer
) -> None:
    _, tab = fresh
    await to_start(tab)
    await tab.say("Is anybody there?")
    failed = tab.transcript.get_by_role("group", name="The turn failed")
    await expect(failed).to_contain_text("no model is configured")
    line = tab.page.get_by_role("region", name="No model is configured")
    await line.get_by_role("button", name="Choose a model").click()
    dialog = tab.page.get_by_role("dialog", name="Choose a model")
    await dialog.get_by_role("textbox", name="Base URL").fill(provider.url)
    await dialog.get_by_role("textbox", name="API key").fill(KEY)
    await dialog.get_by_role("button", name="Test and save").click()
    await dialog.get_by_role("button", name="Use in this session").click()
    await expect(line).to_be_hidden()
    await tab.say("And now?")
    await expect(tab.replies.last).to_have_text("From the real one.")


async def test_a_model_server_on_this_machine_is_one_click_away(
    fresh: tuple[Person, Tab],
) -> None:
    somebody, tab = fresh
    async with ModelServer(lambda _: Reply(text="From next door.")) as models:
        local_server = {"name": "ollama", "base_url": models.url, "models": [MODEL]}

        async def one(route: Route) -> None:
            # Servers are looked for at ports that everybody knows, and those are not a test's own.
            await route.fulfill(body=json.dumps({"servers": [local_server]}))

        await somebody.context.route("**/api/setup/servers", one)
        await to_start(tab)
        here = tab.page.get_by_role("region", name="On this machine")
        await here.get_by_role("button", name="Refresh").click()
        await here.get_by_role("button", name=f"Use {MODEL}").click()
        await expect(tab.page.get_by_role("main")).to_contain_text(f"ollama:{MODEL} is ready.")
        await tab.say("Who is there?")
        await expect(tab.replies).to_have_text(["From next door."])


async def test_after_a_key_another_of_its_models_becomes_the_default_and_later_with_no_key(
    fresh: tuple[Person, Tab], tmp_path: Path
) -> None:
    somebody, tab = fresh
    names = ("text-embedding-3", "small-model", "large-model")
    async with ModelServer(lambda _: Reply(text="Heard."), models=names, key=KEY) as models:
        form = await to_start(tab)
        await form.get_by_role("textbox", name="Base URL").fill(models.url)
        await form.get_by_role("textbox", name="API key").fill(KEY)
        await form.get_by_role("button", name="Test and save").click()
        main = tab.page.get_by_role("main")
        await expect(main.get_by_role("status")).to_contain_text("small-model is ready.")
        standard = main.get_by_role("combobox", name="Default model")
        # A model for embeddings is not offered, here and below.
        await expect(standard.get_by_role("option")).to_have_count(2)
        await look_at(tab, "default-model", standard, tmp_path)
        chosen = await standard.evaluate(CHOICE, "large-model")
        await standard.select_option(chosen)
        await expect(main.get_by_role("status")).to_contain_text("large-model is ready.")
        await tab.say("Who are you?")
        await expect(tab.replies).to_have_text(["Heard."])
        assert (await somebody.asks("/api/setup"))["model"] == chosen

        # Another day: the server still knows the key.
        await tab.page.reload()
        await tab.button("Session settings").click()
        settings = tab.page.get_by_role("region", name="Session settings")
        model = settings.get_by_role("combobox", name="Model", exact=True)
        await model.focus()
        await expect(model.get_by_role("option")).to_have_count(2)
        await settings.get_by_role("button", name="Models…").click()
        dialog = tab.page.get_by_role("dialog", name="Choose a model")
        standard = dialog.get_by_role("combobox", name="Default model")
        await expect(standard).to_have_value(chosen)
        await look_at(tab, "models", standard, tmp_path)
        await standard.select_option(await standard.evaluate(CHOICE, "small-model"))
        await expect(dialog.get_by_role("status")).to_contain_text("small-model is ready.")
        await dialog.get_by_role("button", name="Use in this session").click()
        await tab.say("And now?")
        await expect(tab.replies).to_have_text(["Heard.", "Heard."])
        # A title is asked for without tools, at its own time.
        bodies = [request.body for request in models.asked if request.body.get("tools")]
        assert [body["model"] for body in bodies] == ["large-model", "small-model"]
