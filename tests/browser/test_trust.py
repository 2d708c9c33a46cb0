"""What a folder brings along, on the page: shown, looked at, and trusted by a person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.test_looks import AXE, LOOKS, Eye

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("kit.7")]

SKILL = "---\nname: letters\ndescription: Writes letters.\n---\nBegin with Dear."
HOOK = '[[hooks]]\nevent = "after_call"\nmatch = "write_file"\ncommand = "make format"\n'


@pytest.fixture
def brought(house: House) -> Iterator[Path]:
    """The workspace, with a server, a hook and a skill until the test is over."""
    workspace = house.served.workspace
    skill = workspace / ".keryx" / "skills" / "letters" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    files = {
        skill: SKILL,
        workspace / ".keryx" / "hooks.toml": HOOK,
        workspace / ".mcp.json": json.dumps(
            {"mcpServers": {"notes": {"command": "notes-server", "args": ["--all"]}}}
        ),
    }
    for file, content in files.items():
        file.write_text(content)
    yield workspace
    for file in files:
        file.unlink()
    for folder in (skill.parent, skill.parent.parent, workspace / ".keryx"):
        folder.rmdir()


def line(tab: Tab) -> Locator:
    return tab.page.get_by_role("region", name="Trust this folder")


async def reviewed(tab: Tab) -> Locator:
    """The dialog, opened as a person opens it."""
    await line(tab).get_by_role("button", name="Review…").click()
    return tab.page.get_by_role("dialog", name="Trust this folder?")


async def test_a_person_looks_at_what_a_folder_brings_along_and_trusts_it(
    somebody: Person, tab: Tab, house: House, brought: Path
) -> None:
    somebody.watch.expects("409")
    before = house.stage.on("Before", Reply(text="Not yet."))
    await tab.begin("Before")
    await expect(line(tab)).to_contain_text("1 MCP server, 1 hook and 1 skill")
    assert "Writes letters." not in (await before.request()).raw.decode()
    dialog = await reviewed(tab)
    await expect(dialog.get_by_role("list", name="MCP servers")).to_contain_text(
        "notes-server --all"
    )
    await expect(dialog.get_by_role("list", name="Hooks")).to_contain_text("make format")
    await expect(dialog.get_by_role("list", name="Skills")).to_contain_text("Writes letters.")
    await dialog.get_by_role("button", name="Cancel").click()
    await expect(line(tab)).to_be_visible()
    # What changes while a person looks at it is not what they trust.
    dialog = await reviewed(tab)
    (brought / ".keryx" / "hooks.toml").write_text(HOOK.replace("make format", "make mischief"))
    await dialog.get_by_role("button", name="Trust this folder").click()
    await expect(dialog.get_by_role("alert")).to_contain_text("has changed since it was shown")
    await dialog.get_by_role("button", name="Cancel").click()
    dialog = await reviewed(tab)
    await expect(dialog.get_by_role("list", name="Hooks")).to_contain_text("make mischief")
    await dialog.get_by_role("button", name="Trust this folder").click()
    await expect(tab.page.get_by_role("status").filter(has_text="is trusted")).to_be_visible()
    await expect(line(tab)).to_have_count(0)
    after = house.stage.on("After", Reply(text="Dear."))
    await tab.say("After")
    assert "Writes letters." in (await after.request()).raw.decode()


@pytest.mark.parametrize("look", LOOKS)
async def test_the_line_and_the_dialog_can_be_seen_and_used(
    chromium: Browser, house: House, brought: Path, tmp_path: Path, look: str
) -> None:
    (brought / ".keryx" / "hooks.toml").write_text(f"{HOOK}# {look}\n")
    house.stage.on(f"Look {look}", Reply(text="Seen."))
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, look, AXE.read_text())
        await tab.say(f"Look {look}")  # the page begins with a new session
        await expect(line(tab)).to_be_visible()
        await eye.sees("trust-line", line(tab))
        dialog = await reviewed(tab)
        await eye.sees("trust-dialog", dialog.get_by_role("button", name="Trust this folder"))
        assert eye.violations == []
