"""Sessions as people keep them: tags, several at once, copies, files and links; in every look."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from keryx.testing.modelserver import Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House
from tests.browser.scripted_replies import ScriptedReplies
from tests.browser.test_looks import AXE, LOOKS, Eye

pytestmark = pytest.mark.asyncio(loop_scope="module")


async def begun(tab: Tab, stage: ScriptedReplies, *titles: str) -> None:
    for title in titles:
        stage.on(title, Reply(text=f"**Yes**, {title}."))
        await tab.begin(title)
        await tab.settles()


def box(tab: Tab, title: str) -> Locator:
    """The row of a session while sessions are selected."""
    return tab.list.get_by_role("checkbox", name=title)


def dialog(tab: Tab, name: str) -> Locator:
    return tab.page.get_by_role("dialog", name=name, exact=True)


@pytest.mark.promise("page20.18")
async def test_tags_are_folders_that_open_and_close(tab: Tab, stage: ScriptedReplies) -> None:
    await begun(tab, stage, "Water the fern", "Buy tea")
    await tab.choose("Water the fern", "Tags")
    tags = dialog(tab, "Tags")
    field = tags.get_by_role("textbox", name="New tag")
    await field.fill("  Home  ")
    await field.press("Enter")
    await field.fill("home")
    await field.press("Enter")
    await expect(tags.get_by_role("checkbox", name="Home")).to_be_checked()
    await tags.get_by_role("button", name="Save").click()
    await expect(tags).to_be_hidden()
    folder = tab.list.get_by_role("button", name="Home 1")
    await expect(folder).to_have_attribute("aria-expanded", "false")
    await expect(tab.session("Water the fern")).to_be_hidden()
    await folder.press("Enter")
    await expect(tab.session("Water the fern")).to_be_visible()
    await tab.page.reload()
    await expect(tab.session("Water the fern")).to_be_visible()
    await tab.choose("Water the fern", "Tags")
    await tags.get_by_role("checkbox", name="Home").uncheck()
    await tags.get_by_role("button", name="Save").click()
    await expect(folder).to_be_hidden()
    await expect(tab.session("Water the fern")).to_be_visible()


@pytest.mark.promise("page20.18")
async def test_several_are_selected_with_the_mouse_and_the_keyboard(
    tab: Tab, stage: ScriptedReplies, tmp_path: Path
) -> None:
    await begun(tab, stage, "Plum one", "Plum two", "Plum three", "Plum four")
    await tab.list.get_by_role("button", name="Select", exact=True).click()
    await box(tab, "Plum four").click()
    await box(tab, "Plum two").click(modifiers=["Shift"])
    bar = tab.list.get_by_role("group", name="Selected sessions")
    await expect(bar).to_contain_text("3 selected")
    await bar.get_by_role("button", name="Tags").click()
    field = dialog(tab, "Tags").get_by_role("textbox", name="New tag")
    await field.fill("Fruit")
    await field.press("Enter")
    await dialog(tab, "Tags").get_by_role("button", name="Save").click()
    await tab.list.get_by_role("button", name="Fruit 3").click()
    await expect(tab.session("Plum three")).to_be_visible()

    # By keyboard: a box with Space, all with Ctrl+A, and out with Escape.
    await tab.list.get_by_role("button", name="Select", exact=True).press("Enter")
    await box(tab, "Plum one").press("Space")
    await expect(bar).to_contain_text("1 selected")
    await box(tab, "Plum one").press("Control+a")
    await expect(bar).not_to_contain_text("1 selected")
    await tab.page.keyboard.press("Escape")
    await expect(bar).to_be_hidden()

    await tab.session("Plum three").get_by_role("button").first.click(modifiers=["Control"])
    await box(tab, "Plum two").click()
    await bar.get_by_role("button", name="Export").click()
    async with tab.page.expect_download() as saving:
        await dialog(tab, "Export").get_by_role("link", name="Download").click()
    saved = await saving.value
    await saved.save_as(tmp_path / "sessions.zip")
    with zipfile.ZipFile(tmp_path / "sessions.zip") as archive:
        assert sorted(archive.namelist()) == ["Plum three.md", "Plum two.md"]

    await tab.choose("Plum two", "Archive")
    await tab.list.get_by_role("button", name="Select", exact=True).click()
    await box(tab, "Plum three").click()
    await box(tab, "Plum four").click()
    await bar.get_by_role("button", name="Archive").click()
    await expect(tab.session("Plum three")).to_be_hidden()
    await tab.button("Archived").click()
    await tab.list.get_by_role("button", name="Select", exact=True).click()
    for title in ("Plum two", "Plum three", "Plum four"):
        await box(tab, title).click()
    await bar.get_by_role("button", name="Delete").click()
    confirmation = dialog(tab, "Delete 3 sessions?")
    await confirmation.get_by_role("button", name="Delete").click()
    await expect(confirmation).to_be_hidden()
    for title in ("Plum two", "Plum three", "Plum four"):
        await expect(tab.session(title)).to_be_hidden()
    await tab.button("Back to sessions").click()
    await expect(tab.session("Plum one")).to_be_visible()


@pytest.mark.promise("page20.18")
async def test_a_session_is_duplicated_exported_and_imported_again(
    somebody: Person, tab: Tab, stage: ScriptedReplies, tmp_path: Path
) -> None:
    somebody.watch.expects("422")
    await begun(tab, stage, "Keep this")
    await tab.choose("Keep this", "Duplicate")
    await expect(tab.page.get_by_role("heading", name="Keep this (copy)")).to_be_visible()
    await expect(tab.replies).to_have_text(["Yes, Keep this."])
    await tab.choose("Keep this (copy)", "Export")
    export = dialog(tab, "Export")
    await export.get_by_role("radio", name="JSON").check()
    async with tab.page.expect_download() as saving:
        await export.get_by_role("link", name="Download").click()
    path = tmp_path / "kept.json"
    await (await saving.value).save_as(path)
    assert json.loads(path.read_text())["format"] == "keryx.session"
    await tab.choose("Keep this (copy)", "Delete")
    await tab.page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(tab.session("Keep this (copy)")).to_be_hidden()

    await tab.list.get_by_role("button", name="Import").click()
    importing = dialog(tab, "Import sessions")
    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"no": "session"}')
    await importing.get_by_label("File").set_input_files(wrong)
    await importing.get_by_role("button", name="Import").click()
    await expect(importing.get_by_role("alert")).to_contain_text("wrong.json")
    await importing.get_by_label("File").set_input_files(path)
    await importing.get_by_role("button", name="Import").click()
    await expect(importing.get_by_role("status")).to_contain_text("1 session imported")
    await importing.get_by_role("button", name="Open").click()
    await expect(tab.page.get_by_role("heading", name="Keep this (copy)")).to_be_visible()
    await expect(tab.replies).to_have_text(["Yes, Keep this."])
    await tab.say("And now?")
    await tab.settles()


@pytest.mark.promise("page20.19")
async def test_somebody_without_a_login_reads_what_was_shared_until_it_is_revoked(
    chromium: Browser, house: House, tab: Tab, stage: ScriptedReplies
) -> None:
    await begun(tab, stage, "Read this")
    await tab.choose("Read this", "Share")
    sharing = dialog(tab, "Share")
    await sharing.get_by_role("combobox", name="Expires").select_option("After 1 day")
    await sharing.get_by_role("button", name="Create link").click()
    link = await sharing.get_by_role("textbox", name="Link").input_value()
    assert link.startswith(house.served.url)
    await sharing.get_by_role("button", name="Close").click()
    stage.on("Said later", Reply(text="Unseen."))
    await tab.say("Said later")
    await tab.settles()

    async with person(chromium, house.served.url) as stranger:
        stranger.watch.expects("404")
        page = (await stranger.opens(link)).page
        await expect(page.get_by_role("heading", name="Read this")).to_be_visible()
        await expect(page.locator("strong")).to_have_text("Yes")
        await expect(page.get_by_text("Said later")).to_be_hidden()
        assert await page.locator("input, textarea, button, script").count() == 0
        await tab.list.get_by_role("button", name="Settings").click()
        await tab.page.get_by_role("link", name="Shared links").click()
        links = tab.page.get_by_role("region", name="Shared links")
        await expect(links).to_contain_text("Read this")
        await links.get_by_role("button", name="Revoke: Read this").click()
        await expect(links).not_to_contain_text("Read this")
        await page.reload()
        await expect(page.get_by_role("heading", name="This link doesn't work")).to_be_visible()


@pytest.mark.promise("page20.18", "page20.19")
@pytest.mark.parametrize("look", LOOKS)
async def test_it_looks_right_and_axe_finds_nothing(
    chromium: Browser, house: House, look: str, tmp_path: Path
) -> None:
    async with person(chromium, house.served.url, state=house.state, **LOOKS[look]) as somebody:
        tab = await somebody.opens()
        eye = Eye(tab, tmp_path, f"kept-{look}", AXE.read_text())
        house.stage.on(
            "A tagged one", Reply(text="# Herbs\n\n- **Thyme**\n- `sage`\n\n```sh\nls\n```")
        )
        await tab.say("A tagged one")
        await expect(tab.said.first).to_have_text("A tagged one")
        await tab.settles()
        answer = await somebody.context.request.patch(
            f"{house.served.url}api/sessions/{tab.session_id}",
            data={"tags": ["Garden", "A rather long name for a tag, 38 char"]},
            headers={"Origin": house.served.url.rstrip("/")},
        )
        assert answer.ok, await answer.text()
        await shown_list(tab, look)
        folder = tab.list.get_by_role("button", name="Garden")
        if await folder.get_attribute("aria-expanded") == "false":
            await folder.click()
        await eye.sees("folders", tab.session("A tagged one").first)
        await tab.list.get_by_role("button", name="Select", exact=True).click()
        await box(tab, "A tagged one").first.click()
        await eye.sees("selecting", box(tab, "A tagged one").first)
        bar = tab.list.get_by_role("group", name="Selected sessions")
        for name in ("Tags", "Export", "Delete"):
            await bar.get_by_role("button", name=name).click()
            open_dialog = tab.page.get_by_role("dialog")
            await eye.sees(name.lower(), open_dialog)
            await tab.page.keyboard.press("Escape")
            await expect(open_dialog).to_be_hidden()
        await bar.get_by_role("button", name="Done").click()
        await tab.list.get_by_role("button", name="Import").click()
        await eye.sees("import", dialog(tab, "Import sessions"))
        await tab.page.keyboard.press("Escape")
        line = tab.session("A tagged one").first
        await line.get_by_role("button", name="Actions for A tagged one").click()
        await eye.sees("actions", line)
        await line.get_by_role("button", name="Share").click()
        sharing = dialog(tab, "Share")
        await sharing.get_by_role("button", name="Create link").click()
        await eye.sees("share", sharing.get_by_role("textbox", name="Link"))
        link = await sharing.get_by_role("textbox", name="Link").input_value()
        # The page itself runs no script, not even axe.
        text = await (await somebody.context.request.get(link)).text()
        reader = await somebody.opens("about:blank")
        await reader.page.set_content(text)
        look_again = Eye(reader, tmp_path, f"kept-{look}", AXE.read_text())
        await look_again.sees("shared", reader.page.get_by_role("heading", name="A tagged one"))
        assert eye.violations + look_again.violations == []


async def shown_list(tab: Tab, look: str) -> None:
    if look == "narrow":
        await tab.page.get_by_role("button", name="Sessions", exact=True).click()
    await expect(tab.list).to_be_visible()
