"""The settings screen: changed there and by hand at once; by keyboard, and in every look."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Route, expect

from keryx.testing.modelserver import MODEL, ModelServer
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House, lived_in
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies
from tests.browser.test_looks import AXE, LOOKS, Eye

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.13")]

TEXT = f"""\
# My settings. Hands off!

[providers.work]
base_url = "URL"
api_key = "sk-right-0123"  # of the team

[models.auxiliary]
titles = "work:{MODEL}"  # cheap

[limits]
# I raised this once.
steps = 200  # enough

[personalities]
terse = "Answer in one sentence."

[mcp.servers.broken]
command = "{sys.executable}"
args = ["-c", "raise SystemExit('out of order')"]
env = {{ SOME_TOKEN = "sk-mcp-0123" }}
"""


SECTIONS = (
    *("Providers", "Models", "Profiles", "Tools", "MCP servers", "Approvals", "Memory", "Skills"),
    *("Limits", "Appearance", "Notifications", "People", "Access tokens", "Shared links"),
)
TOO_WIDE = """() => {
    const body = document.querySelector(".settings-screen-body");
    return body.scrollWidth - body.clientWidth;
}"""
"""How many pixels of a section are to the right of the window, where nobody reaches them."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """A server with a configuration that a person wrote."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(tmp_path_factory.mktemp("house"), model.url)
        served.configure(TEXT.replace("URL", model.url))
        async with lived_in(chromium, served, stage) as entered:
            yield entered


@pytest.fixture
def file(house: House) -> Path:
    return house.served.home / "config.toml"


def read(path: Path) -> str:
    return path.read_text()


def write(path: Path, text: str) -> None:
    path.write_text(text)


async def opened(tab: Tab, section: str) -> Locator:
    """A section, opened as a person opens it."""
    toggle = tab.page.get_by_role("button", name="Sessions", exact=True)
    settings = tab.list.get_by_role("button", name="Settings")
    await expect(toggle.or_(settings).first).to_be_visible()
    if await toggle.is_visible():
        await toggle.click()
    await settings.click()
    await tab.page.get_by_role("link", name=section, exact=True).click()
    shown = tab.page.get_by_role("region", name=section, exact=True)
    await expect(shown).to_be_visible()
    return shown


async def test_page_and_hand_change_the_file_at_the_same_time(
    somebody: Person, tab: Tab, file: Path
) -> None:
    somebody.watch.expects("409")
    before = read(file)
    limits = await opened(tab, "Limits")
    steps = limits.get_by_label("Steps per turn")
    await expect(steps).to_have_value("200")
    # By hand, after the page has read it: another setting, and comments.
    by_hand = before.replace("Answer in one sentence.", "Answer in two.").replace(
        "# I raised this once.", "# I raised this twice."
    )
    write(file, by_hand)
    await steps.fill("150")
    await steps.press("Enter")
    await expect(limits.get_by_text("Saved", exact=True)).to_be_visible()
    assert read(file) == by_hand.replace("steps = 200", "steps = 150")
    # By hand: the same setting. Both values are shown, and the file stays as it is.
    theirs = read(file).replace("steps = 150", "steps = 175")
    write(file, theirs)
    await steps.fill("160")
    await steps.press("Enter")
    box = tab.page.get_by_role("region", name="This setting changed in the file: limits.steps")
    await expect(box).to_contain_text("175")
    await expect(box).to_contain_text("160")
    assert read(file) == theirs
    await expect(steps).to_have_value("175")
    await box.get_by_role("button", name="Use my change").click()
    await expect(box).to_be_hidden()
    await expect(steps).to_have_value("160")
    assert read(file) == theirs.replace("175", "160")
    # And the other way round.
    write(file, theirs)
    await steps.fill("170")
    await steps.press("Enter")
    await box.get_by_role("button", name="Keep the file's value").click()
    await expect(box).to_be_hidden()
    await expect(steps).to_have_value("175")
    assert read(file) == theirs


async def test_wrong_input_is_refused_and_a_broken_file_is_left_alone(
    somebody: Person, file: Path
) -> None:
    somebody.watch.expects("422")
    good = read(file)
    tab = await somebody.opens()
    limits = await opened(tab, "Limits")
    tokens = limits.get_by_label("Tokens per turn")
    await tokens.fill("many")
    await tokens.press("Enter")
    await expect(limits.get_by_role("alert")).to_contain_text("Enter a number")
    await tokens.fill("1.5")
    await tokens.press("Enter")
    await expect(limits.get_by_role("alert")).to_contain_text("Expected `int | null`")
    assert read(file) == good
    # What was saved before is not said beside an error.
    await tokens.fill("9000")
    await tokens.press("Enter")
    await expect(limits.get_by_text("Saved", exact=True)).to_be_visible()
    await tokens.fill("many")
    await tokens.press("Enter")
    await expect(limits.get_by_role("alert")).to_contain_text("Enter a number")
    await expect(limits.get_by_text("Saved", exact=True)).to_be_hidden()
    good = read(file)
    broken = good + "\n[limits\n"
    write(file, broken)
    await tab.page.reload()
    alert = tab.page.get_by_role("alert").filter(has_text="config.toml has an error")
    await expect(alert).to_contain_text(f"Line {broken.count(chr(10))}.")
    write(file, good)
    await alert.get_by_role("button", name="Refresh").click()
    await expect(alert).to_be_hidden()


async def test_everything_is_found_and_changed_by_keyboard(tab: Tab, file: Path) -> None:
    await opened(tab, "Providers")
    keys = tab.page.keyboard
    search = tab.page.get_by_role("searchbox", name="Search settings")
    await search.focus()
    await keys.type("fallback")
    field = tab.page.locator('[data-path="models.fallback"]')
    box = field.get_by_label("Fallback models", exact=True)
    await box.focus()
    for model in ("work:one", "work:two"):
        await keys.type(model)
        await keys.press("Enter")
        await expect(field.get_by_role("listitem").filter(has_text=model)).to_be_visible()
    await field.get_by_role("button", name="Move work:two up").press("Enter")
    await expect(field.get_by_role("listitem").first).to_contain_text("work:two")
    assert 'fallback = ["work:two", "work:one"]' in read(file)
    for model in ("work:one", "work:two"):
        await field.get_by_role("button", name=f"Remove {model}").press("Enter")
        await expect(field.get_by_role("listitem").filter(has_text=model)).to_be_hidden()
    assert "fallback" not in read(file)
    await search.fill("no such thing")
    await expect(tab.page.get_by_text("No setting matches your search.")).to_be_visible()
    await search.fill("")
    await tab.page.get_by_role("button", name="Back").press("Enter")
    await expect(tab.box).to_be_visible()


async def test_what_a_variable_sets_is_shown_as_such(tab: Tab) -> None:
    models = await opened(tab, "Models")
    await expect(models).to_contain_text("by KERYX_MODEL. Change it where you start Keryx.")
    await tab.page.get_by_role("link", name="Providers").click()
    provider = tab.page.get_by_role("listitem").filter(has_text="openai")
    await expect(provider.first).to_contain_text("Set by OPENAI_API_KEY")
    await expect(provider.get_by_role("button", name="Remove openai")).to_be_hidden()


@pytest.mark.promise("page20.15")
async def test_keys_are_written_tested_and_never_shown(somebody: Person, file: Path) -> None:
    answers: list[str] = []
    tab = await somebody.opens()
    tab.page.on("response", lambda answer: answers.append(answer.url))
    providers = await opened(tab, "Providers")
    await providers.get_by_role("button", name="Test work").click()
    await expect(providers.get_by_text(f"It works: {MODEL} answered.")).to_be_visible()
    await providers.get_by_role("button", name="Edit work").click()
    await providers.get_by_label("New API key").fill("sk-new-0123")
    await providers.get_by_role("button", name="Test and save").click()
    await expect(providers.get_by_label("New API key")).to_be_hidden()
    assert 'api_key = "sk-new-0123"  # of the team' in read(file)
    assert any("/api/settings/providers/work" in url for url in answers)
    await tab.page.reload()
    await expect(providers.get_by_role("list")).to_contain_text("Key saved")
    assert "sk-" not in await tab.page.content()


async def refuse_changes(route: Route) -> None:
    await (route.continue_() if route.request.method == "GET" else route.abort())


async def test_a_personality_and_a_profile_are_made_edited_and_removed(
    somebody: Person, tab: Tab, file: Path
) -> None:
    somebody.watch.expects_outage()
    profiles = await opened(tab, "Profiles")
    await profiles.get_by_role("textbox", name="New personality").fill("pirate")
    await profiles.get_by_role("button", name="Add to New personality").click()
    await profiles.get_by_role("button", name="Edit pirate").click()
    await profiles.get_by_label("Prompt").fill("You are a pirate.")
    await profiles.get_by_label("Tone").fill("salty")
    await profiles.get_by_role("button", name="Save").click()
    await expect(profiles.get_by_label("Prompt")).to_be_hidden()
    assert "You are a pirate." in read(file)
    await profiles.get_by_role("textbox", name="New profile").fill("night")
    await profiles.get_by_role("button", name="Add to New profile").click()
    await profiles.get_by_role("button", name="Edit night").click()
    tools = profiles.get_by_role("combobox", name="Tools on the page", exact=True)
    await tools.fill("files")
    # What cannot be added stays in its field.
    await tab.page.route("**/api/settings", refuse_changes)
    await profiles.get_by_role("button", name="Add to Tools on the page").click()
    await expect(profiles.get_by_role("alert")).to_contain_text("Cannot reach the server.")
    await expect(tools).to_have_value("files")
    await tab.page.unroute("**/api/settings", refuse_changes)
    await profiles.get_by_role("button", name="Add to Tools on the page").click()
    await expect(profiles.get_by_role("button", name="Remove files")).to_be_visible()
    await expect(tools).to_have_value("")
    for name in ("night", "pirate"):
        await profiles.get_by_role("button", name=f"Remove {name}").click()
        await profiles.get_by_role("group").get_by_role("button", name="Remove").click()
        await expect(profiles.get_by_role("button", name=f"Edit {name}")).to_be_hidden()
    assert "night" not in read(file)
    assert "# My settings. Hands off!" in read(file)


async def test_mcp_servers_show_their_state_and_keep_their_secrets(tab: Tab, file: Path) -> None:
    servers = await opened(tab, "MCP servers")
    broken = servers.get_by_role("listitem").filter(has_text="broken")
    await expect(broken).to_contain_text("Not used yet")
    await broken.get_by_role("button", name="Connect broken").click()
    await expect(broken).to_contain_text("out of order")
    await broken.get_by_role("button", name="Edit broken").click()
    await expect(broken.get_by_label("Variables")).to_have_value("SOME_TOKEN=••••••")
    await broken.get_by_label("Seconds per call").fill("30")
    await broken.get_by_role("button", name="Save").click()
    await expect(broken.get_by_label("Variables")).to_be_hidden()
    assert 'env = { SOME_TOKEN = "sk-mcp-0123" }' in read(file)
    assert "timeout = 30" in read(file)
    await servers.get_by_role("button", name="New MCP server").click()
    await servers.get_by_label("Name", exact=True).fill("docs")
    await servers.get_by_label("Kind").select_option(label="Address")
    await servers.get_by_label("URL").fill("https://docs.example/mcp")
    await servers.get_by_role("button", name="Save").click()
    await expect(servers.get_by_role("button", name="Edit docs")).to_be_visible()
    assert '[mcp.servers.docs]\nurl = "https://docs.example/mcp"\n' in read(file)


@pytest.mark.parametrize("look", LOOKS)
async def test_the_screen_can_be_seen_and_used(
    chromium: Browser, house: House, tmp_path: Path, look: str
) -> None:
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, AXE.read_text())
        for section in SECTIONS:
            shown = await opened(tab, section)
            if section == "MCP servers":
                shown = shown.get_by_role("button", name="Edit broken")
            await eye.sees(section, shown)
            assert await tab.page.evaluate(TOO_WIDE) <= 0, section
        tokens = await opened(tab, "Access tokens")
        await tokens.get_by_label("What is it for?").fill(f"ci {look}")
        await tokens.get_by_role("button", name="Create").click()
        await eye.sees("token", tokens.get_by_label("New token"))
        await tokens.get_by_role("button", name=f"Revoke ci {look}").click()
        await tokens.get_by_role("group").get_by_role("button", name="Revoke").click()
        await expect(tokens.get_by_role("button", name=f"Revoke ci {look}")).to_be_hidden()
        assert eye.violations == []
