"""The page in German: no text of the English catalogue is left on any of its main screens."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Locator, Page, expect

from keryx.testing.modelserver import Call, ModelServer, Reply
from tests.browser.browser_user import Person, Tab, person
from tests.browser.conftest import House, lived_in
from tests.browser.page_server import PageServer
from tests.browser.scripted_replies import ScriptedReplies

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("page20.24")]

TEXTS = Path(__file__).parents[2] / "web" / "src" / "texts"
COMMENT = re.compile(r"/\*[\s\S]*?\*/|^\s*//.*$", re.MULTILINE)
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\]|\\.)*)`')
PART = re.compile(r"\$\{[^}]*\}")
OF_THIS_TEST = {"workspace"}
"""Names of its own that are words of the catalogue too."""
WORD = re.compile(r"[^\W\d_]{2}")
WINDOWS = {"wide": {"width": 1280, "height": 900}, "narrow": {"width": 360, "height": 740}}
VISIBLE = """() => {
  const CONTENT = "pre, code, [class^=diff]";
  const texts = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (parent.checkVisibility() && !parent.closest(CONTENT)) texts.push(node.data);
  }
  for (const element of document.querySelectorAll("[aria-label], [title], [placeholder]"))
    if (element.checkVisibility())
      for (const name of ["aria-label", "title", "placeholder"])
        texts.push(element.getAttribute(name) ?? "");
  return [document.title, ...texts].map((text) => text.trim()).filter(Boolean);
}"""
TOO_WIDE = """() => [...document.querySelectorAll("html, dialog[open], [role=tab], .button")]
  .filter((part) => part.checkVisibility() && part.scrollWidth > part.clientWidth)
  .map((part) => part.tagName + " " + part.className)"""


def texts_in(*files: Path) -> set[str]:
    """Every text in these sources; what is put into it when it is shown stands as `${…}`."""
    sources = (COMMENT.sub("", file.read_text()) for file in files)
    literals = (
        match[1] or match[2] or "" for source in sources for match in LITERAL.finditer(source)
    )
    return {text for text in literals if WORD.search(PART.sub("", text))}


def english_only() -> re.Pattern[str]:
    german = list(TEXTS.glob("german/*.ts"))
    areas = [TEXTS / file.name for file in german if file.name not in ("index.ts", "plural.ts")]
    texts = texts_in(TEXTS / "english.ts", *areas) - texts_in(*german) - OF_THIS_TEST
    assert len(texts) > 300
    shapes = (".+".join(re.escape(part) for part in PART.split(text.strip())) for text in texts)
    return re.compile("|".join(shapes))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def house(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[House]:
    """A server that has a memory too."""
    stage = ScriptedReplies()
    async with ModelServer(stage.answer, keeps_asked=False) as model:
        served = PageServer(tmp_path_factory.mktemp("house"), model.url)
        served.configure('[memory]\nproviders = ["notes"]\n')
        async with lived_in(chromium, served, stage) as entered:
            yield entered


class Reader:
    """Reads all that a screen shows, and keeps what is English or does not fit."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._english = english_only()
        self.problems: list[str] = []

    async def reads(self, name: str, shown: Locator) -> None:
        await expect(shown).to_be_visible()
        for text in await self._page.evaluate(VISIBLE):
            if self._english.fullmatch(text):
                self.problems.append(f"{name}: {text}")
        for part in await self._page.evaluate(TOO_WIDE):
            self.problems.append(f"{name}: {part} is too narrow for what is in it")


class German:
    """One tab in German, with what a person finds in it."""

    def __init__(self, page: Page, *, narrow: bool) -> None:
        self.page = page
        self.narrow = narrow
        self.box = page.get_by_role("textbox", name="Nachricht", exact=True)
        self.list = page.get_by_role("navigation", name="Sitzungen")
        self.transcript = page.get_by_role("region", name="Verlauf")
        self.replies = self.transcript.get_by_role("article", name="Antwort")

    def button(self, name: str) -> Locator:
        return self.page.get_by_role("button", name=name, exact=True)

    def dialog(self, name: str) -> Locator:
        return self.page.get_by_role("dialog", name=name, exact=True)

    async def say(self, words: str) -> None:
        await self.box.fill(words)
        await self.box.press("Enter")

    async def starts_anew(self) -> None:
        await self.shows_list()
        await self.list.get_by_role("button", name="Neue Sitzung", exact=True).first.click()
        await expect(
            self.page.get_by_role("heading", name="Womit kann ich helfen?")
        ).to_be_visible()

    async def shows_list(self) -> None:
        if self.narrow:
            await self.button("Sitzungen").click()

    async def chooses(self, command: str) -> None:
        """One of the commands of Ctrl+K."""
        await self.page.keyboard.press("Control+k")
        await self.dialog("Suche").get_by_role("searchbox").fill(command)
        await self.dialog("Suche").get_by_role("button", name=command).click()


async def read_the_start(tab: German, reader: Reader) -> None:
    await reader.reads("start", tab.page.get_by_role("heading", name="Womit kann ich helfen?"))
    await tab.button("Mehr").click()
    await reader.reads("more", tab.page.get_by_role("combobox", name="Freigaben"))
    await tab.box.fill("/")
    await tab.box.press("End")
    await reader.reads("commands", tab.page.get_by_role("listbox", name="Vorschläge"))
    await tab.say("/help")
    await reader.reads("help", tab.dialog("Befehle und Tasten"))
    await tab.page.keyboard.press("Escape")
    await tab.button("Modelle…").click()
    await tab.button("Modellserver oder Schlüssel hinzufügen").click()
    form = tab.page.get_by_role("form", name="API-Schlüssel hinzufügen")
    await reader.reads("models", form)
    await tab.page.keyboard.press("Escape")


async def read_a_session(tab: German, reader: Reader) -> None:
    await tab.say("Zähle die Dateien")
    await expect(tab.replies.last).to_contain_text("Gezählt.")
    await tab.transcript.get_by_role("button", name="Gedankengang").click()
    call = tab.transcript.get_by_role("group", name="terminal", exact=True)
    await call.get_by_role("button", expanded=False).click()
    await reader.reads("session", call.get_by_role("group", name="Ergebnis"))
    await tab.button("Aktionen für diese Runde").click()
    await tab.button("Runde rückgängig machen").click()
    await reader.reads("undo", tab.dialog("Diese Runde rückgängig machen?"))
    await tab.page.keyboard.press("Escape")
    await tab.button("Sitzungseinstellungen").click()
    settings = tab.page.get_by_role("region", name="Sitzungseinstellungen")
    await reader.reads("settings", settings)
    await tab.page.keyboard.press("Escape")


async def read_the_inspector(tab: German, reader: Reader) -> None:
    await tab.button("Einzelheiten zu terminal").click()
    inspector = tab.page.get_by_role("complementary", name="Inspektor")
    await reader.reads("call", inspector.get_by_text("Fertig in"))
    await inspector.get_by_role("tab", name="Dateien").click()
    await reader.reads("files", inspector.get_by_role("button", name="liste.txt"))
    await inspector.get_by_role("tab", name="Änderungen").click()
    await reader.reads("changes", inspector.get_by_text("1 Datei geändert"))
    await inspector.get_by_role("button", name="Alle zurücksetzen").click()
    await reader.reads("revert", tab.dialog("1 Datei zurücksetzen?"))
    await tab.page.keyboard.press("Escape")
    await inspector.get_by_role("tab", name="Kontext").click()
    await reader.reads("context", inspector.get_by_role("group", name="Teile des Prompts"))
    if tab.narrow:
        await tab.page.keyboard.press("Escape")


async def read_what_asks_and_what_fails(tab: German, reader: Reader) -> None:
    await tab.starts_anew()
    await tab.button("Mehr").click()
    approvals = tab.page.get_by_role("combobox", name="Freigaben")
    await approvals.select_option(label="Vor jeder Änderung fragen")
    await tab.say("Räume auf")
    asks = tab.page.get_by_role("region", name="Wartet auf Sie")
    await expect(asks.get_by_role("textbox", name="Ihre Antwort")).to_be_visible()
    await reader.reads("asks", asks.get_by_role("group", name="terminal erlauben?"))
    await tab.box.fill("Lieber nicht")
    await reader.reads("steering", tab.button("Nach diesem Schritt"))
    await tab.box.press("Enter")
    await reader.reads("queue", tab.page.get_by_role("list", name="Wartende Nachrichten"))
    await tab.button("Entfernen: Lieber nicht").click()
    await tab.button("Stopp").click()
    await reader.reads("stopped", tab.transcript.get_by_text("Gestoppt von Ihnen"))
    await tab.starts_anew()
    await tab.say("Frage vergebens")
    failure = tab.transcript.get_by_role("group", name="Die Runde ist fehlgeschlagen")
    await reader.reads("failed", failure)


async def read_the_list(tab: German, reader: Reader) -> None:
    await tab.shows_list()
    await tab.list.get_by_role("button", name="Aktionen für").first.click()
    await reader.reads("list", tab.list.get_by_role("button", name="Umbenennen"))
    await tab.list.get_by_role("button", name="Löschen").click()
    await reader.reads("deletion", tab.dialog("Diese Sitzung löschen?"))
    await tab.page.keyboard.press("Escape")
    await expect(tab.dialog("Diese Sitzung löschen?")).to_have_count(0)
    await tab.chooses("Freigaberegeln")
    await reader.reads("rules", tab.dialog("Freigaberegeln").get_by_text("Noch keine Regeln."))
    await tab.page.keyboard.press("Escape")
    await tab.chooses("Gedächtnis")
    await reader.reads("memory", tab.dialog("Gedächtnis").get_by_text("Noch ist nichts gemerkt."))
    await tab.page.keyboard.press("Escape")
    await tab.chooses("Verbrauch")
    await reader.reads("usage", tab.dialog("Verbrauch").get_by_role("table").first)
    await tab.page.keyboard.press("Escape")
    await tab.page.keyboard.press("Control+k")
    await tab.dialog("Suche").get_by_role("searchbox").fill("zähle")
    await reader.reads("search", tab.dialog("Suche").locator("mark").first)
    await tab.page.keyboard.press("Escape")
    if tab.narrow:
        await expect(tab.list).to_be_hidden()  # what is chosen with Ctrl+K closes it


async def read_the_settings(tab: German, reader: Reader) -> None:
    await tab.chooses("Einstellungen")
    sections = tab.page.get_by_role("navigation", name="Bereiche der Einstellungen")
    await expect(sections.get_by_role("link").first).to_be_visible()
    for link in await sections.get_by_role("link").all():
        name = await link.inner_text()
        await link.click()
        await reader.reads(name, tab.page.get_by_role("region", name=name, exact=True))
    field = tab.page.get_by_role("searchbox", name="Einstellungen durchsuchen")
    await field.fill("kosten")
    await reader.reads("settings found", tab.page.get_by_text("Kosten je Tag"))


@pytest.mark.parametrize("window", WINDOWS)
async def test_no_english_text_is_left_and_every_german_one_fits(
    chromium: Browser, house: House, window: str
) -> None:
    (house.served.workspace / "liste.txt").write_text("eins\n")
    house.stage.on(
        "Zähle die Dateien",
        Reply(
            reasoning="Erst die Liste.",
            text="Ich sehe nach.",
            calls=(
                Call("terminal", {"command": "ls"}),
                Call("read_file", {"path": "fehlt.txt"}),
                Call("write_file", {"path": f"{window}.txt", "content": "zwei"}),
            ),
        ),
        Reply(text="Gezählt."),
    )
    ask = {"question": "Alt oder neu?", "choices": ["Alt", "Neu"]}
    touch = Call("terminal", {"command": "touch neu.txt"})
    house.stage.on("Räume auf", Reply(text="Gern.", calls=(touch, Call("clarify", ask))))
    house.stage.on("Frage vergebens", Reply(status=401, message="Nein", code="invalid_api_key"))
    options: dict[str, Any] = {"locale": "de-DE", "viewport": WINDOWS[window]}
    url = house.served.url
    async with person(chromium, url, state=house.state, **options) as somebody:
        tab = German((await somebody.opens()).page, narrow=window == "narrow")
        reader = Reader(tab.page)
        await read_the_start(tab, reader)
        await read_a_session(tab, reader)
        await read_the_inspector(tab, reader)
        await read_what_asks_and_what_fails(tab, reader)
        await read_the_list(tab, reader)
        await read_the_settings(tab, reader)
        assert not reader.problems, "\n".join(sorted(set(reader.problems)))
    async with person(chromium, url, **options) as stranger:
        stranger.watch.expects("401")
        page = (await stranger.opens()).page
        reader = Reader(page)
        await reader.reads("login", page.get_by_role("form", name="Bei Keryx anmelden"))
        assert not reader.problems, "\n".join(sorted(set(reader.problems)))


async def test_a_person_chooses_a_language_for_this_browser(somebody: Person, tab: Tab) -> None:
    await tab.page.get_by_role("combobox", name="Language").select_option(label="Deutsch")
    await expect(tab.page.get_by_role("heading", name="Womit kann ich helfen?")).to_be_visible()
    await expect(tab.page.locator("html")).to_have_attribute("lang", "de")
    german = await somebody.opens()
    language = german.page.get_by_role("combobox", name="Sprache")
    await language.select_option(label="English")
    await expect(german.page.get_by_role("heading", name="What can I help with?")).to_be_visible()
