"""Somebody with a keyboard and no mouse, who must always see where they are."""

from __future__ import annotations

from playwright.async_api import Locator

from tests.browser.browser_user import Tab

MOST_STOPS = 150
COUNT = (
    "window.__touched = 0; addEventListener('pointerdown', () => { window.__touched += 1; }, true);"
)
HERE = """() => {
  const at = document.activeElement;
  if (at === null || at === document.body) return "nothing has the focus";
  if (!at.matches(":focus-visible")) return "";  // a script put it there, after a click
  const shown = at.closest("form.composer textarea") ? at.closest("form.composer") : at;
  const style = getComputedStyle(shown);
  const box = shown.getBoundingClientRect();
  const outlined = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  if (!outlined && shown === at) return `no outline: ${at.outerHTML.slice(0, 160)}`;
  if (box.width < 2 || box.height < 2) return `cannot be seen: ${at.outerHTML.slice(0, 160)}`;
  return "";
}"""


class Hands:
    """Types, and moves by Tab. Whatever it stops at can be seen to have the focus."""

    def __init__(self, tab: Tab) -> None:
        self._page = tab.page
        self.lost: list[str] = []

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self._page.keyboard.press(key)

    async def type(self, text: str, key: str = "Enter") -> None:
        await self._page.keyboard.type(text)
        await self.press(key)

    async def reach(self, target: Locator, key: str = "Tab") -> None:
        """Go on until this has the focus."""
        await target.wait_for()
        element = await target.element_handle()
        for _ in range(MOST_STOPS):
            if await self._page.evaluate(
                "(element) => document.activeElement === element", element
            ):
                return
            await self.press(key)
            await self._look()
        raise AssertionError(f"{target} cannot be reached by {key}")

    async def back(self, target: Locator) -> None:
        await self.reach(target, "Shift+Tab")

    async def do(self, target: Locator, key: str = "Tab") -> None:
        """Reach it and press Enter."""
        await self.reach(target, key)
        await self.press("Enter")

    async def _look(self) -> None:
        said = await self._page.evaluate(HERE)
        if said:
            self.lost.append(said)

    async def touched(self) -> int:
        """How often a mouse or a finger was used after all."""
        return int(await self._page.evaluate("window.__touched"))
