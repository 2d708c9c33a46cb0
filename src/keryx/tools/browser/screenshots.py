"""`browser_screenshot`: a picture of the page, as a file of the workspace and for the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from keryx.errors import ToolFailedError
from keryx.messages import Image, Text
from keryx.ports.effects import Effects, uses, writes
from keryx.ports.files import Files
from keryx.ports.tool import Risk, Tool
from keryx.ports.tool_context import ToolContext
from keryx.tools.browser.current_browser import KEY, open_browser
from keryx.tools.browser.page_text import Screenshot
from keryx.tools.files.content import sized
from keryx.tools.files.edits import Edit, read_before, recorder, replace_all
from keryx.tools.files.file_access import writing_risk
from keryx.tools.files.reading import MAX_IMAGE
from keryx.tools.function import tool

FOLDER: Final = "screenshots"
MEDIA_TYPE: Final = "image/png"
_MOST_NAMES: Final = 10_000


def screenshot_tool() -> Tool:
    @tool(effects=_effects, risk=_risk)
    async def browser_screenshot(
        context: ToolContext,
        path: str | None = None,
        ref: str | None = None,
        *,
        whole: bool = False,
    ) -> Any:
        """Take a picture of the open page: saved as a PNG file, and shown to you.

        Args:
            path: The file, relative to the workspace; a new one in `screenshots` if left out.
            ref: Only this element, by its reference from the last snapshot.
            whole: The whole page, not only the visible part.
        """
        browser = await open_browser(context)
        picture = await browser.request("screenshot", Screenshot, whole=whole, ref=ref)
        name = await context.to_thread(_save, context, path, picture.data)
        fields = {"path": name, "size": len(picture.data), "url": picture.url}
        if context.nested:
            return fields
        text = Text(f"[saved as {name}, {sized(len(picture.data))}]")
        if len(picture.data) > MAX_IMAGE:
            return [text]
        blob = await context.files.keep(picture.data)
        return [Image(blob, MEDIA_TYPE, Path(name).name), text]

    return browser_screenshot


def _effects(args: Any) -> Effects:
    path = FOLDER if args.path is None or "\0" in args.path else args.path
    return uses(KEY) | writes(path)


def _risk(args: Any, workspace: Path) -> Risk:
    return writing_risk([FOLDER if args.path is None else args.path], workspace)


def _save(context: ToolContext, path: str | None, data: bytes) -> str:
    """Write the picture like any other file of the session: logged, and it can be undone."""
    files = context.files
    target = _free_path(files) if path is None else files.resolve(path, write=True)
    name = files.name(target)
    if path is not None and target.suffix.lower() != ".png":
        raise ToolFailedError(f"{path} is no name for a PNG file; give one that ends in .png")
    before = read_before(target, name, files.last_seen(target))
    context.token.raise_if_cancelled()
    replace_all(files, [Edit(target, name, before, data)], recorder(context))
    return name


def _free_path(files: Files) -> Path:
    for number in range(1, _MOST_NAMES):
        target = files.resolve(f"{FOLDER}/page-{number}.png", write=True)
        if not target.exists():
            return target
    raise ToolFailedError(f"the folder {FOLDER} is full; give a path")
