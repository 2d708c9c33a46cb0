"""The page in a real Chromium: opening, scrolling, a crowd of calls, memory and size.

Each time is taken inside the tab. The floors are of the same run and the same browser: an empty
page and a session of one exchange for opening, a page on which nothing happens for frames, a step
with no script for cancelling. Server, model and browser share the machine, as they do at home.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import uvloop
from playwright.async_api import Locator, Page, expect

from keryx.testing.longsession import replied
from parts.pagehouse import LONG_ID, LONG_TITLE, MESSAGES, NESTED, SHORT_TITLE, House, house
from parts.pagewatch import (
    EMPTY,
    MOST_FRAME,
    WATCH,
    Devtools,
    Frames,
    Left,
    frames,
    left,
    percentile,
    slope,
)

OPENINGS: Final = 12
MOST_OPENING: Final = 300.0
SPEED: Final = 20_000
"""Pixels a second: a wheel that is let spin."""
STRETCH: Final = 40_000
CANCELS: Final = 5
MANY: Final = re.compile(r"[5-8]\d\d nested call")
"""The crowd is large by then, and not near its end."""
RUNNING: Final = re.compile("running")
IDLE_SECONDS: Final = 5.0
PACED: Final = 6
FULL: Final = 1_050
"""Turns until all that the page keeps is as much as it may keep: rows (1,050), names of what can be
unfolded (1,000); and the browser's own undo history of the message box (1,000, a node for each)."""
TURNS: Final = 600
EACH: Final = 15
PERIOD: Final = 75
"""Turns from one forgetting to the next. The heap is a saw: a line through its points would rise
with the last tooth, so the line is laid through the means of whole teeth."""
MOST_GROWTH: Final = 100.0
"""Bytes a turn, once nothing may grow any more. A turn that is kept is 4,500; what is left of 600
of them without any reason differs by about 30 KB from one forgetting to the next."""
MOST_SIZE: Final = 250_000
PATIENCE_MS: Final = 120_000
PARTS: Final = ("size", "opening", "scrolling", "crowding", "memory")


async def tab(home: House, address: str = "") -> Page:
    page = await (await home.window()).new_page()
    page.set_default_timeout(PATIENCE_MS)
    await page.add_init_script(WATCH)
    await page.goto(home.url + address)
    await page.get_by_role("textbox", name="Message", exact=True).wait_for()
    return page


async def say(page: Page, text: str) -> None:
    box = page.get_by_role("textbox", name="Message", exact=True)
    await box.fill(text)
    await box.press("Enter")


def replies(page: Page) -> Locator:
    return page.get_by_role("region", name="Transcript").get_by_role("article", name="Reply")


def verdict(is_met: bool) -> str:  # noqa: FBT001 (reads as it is said)
    return "met" if is_met else "MISSED"


# -- opening


async def opening(home: House) -> None:
    empty = [await open_empty(home) for _ in range(OPENINGS)]
    navigated = [await navigate(home) for _ in range(OPENINGS)]
    page = await tab(home)
    clicked: dict[str, list[float]] = {SHORT_TITLE: [], LONG_TITLE: []}
    for _ in range(OPENINGS):
        for title, words in ((SHORT_TITLE, replied(0)), (LONG_TITLE, replied(MESSAGES // 2 - 1))):
            await page.evaluate("words => __watch.opening(words)", words)
            await page.get_by_role("navigation", name="Sessions").get_by_text(title).click()
            clicked[title].append(await page.evaluate("__watch.moment"))
    await page.context.close()
    print(f"opening {MESSAGES:,} messages, to the last of them painted, {OPENINGS} times:")
    tell_opening("a click in the list", clicked[LONG_TITLE], clicked[SHORT_TITLE], "one exchange")
    tell_opening("the page itself, by its address", navigated, empty, "an empty page")


def tell_opening(name: str, ours: Sequence[float], floor: Sequence[float], what: str) -> None:
    met = verdict(max(ours) <= MOST_OPENING)
    print(
        f"  {name:<34} p50 {percentile(ours, 0.5):5.0f}  worst {max(ours):5.0f} ms  "
        f"(floor, {what}: p50 {percentile(floor, 0.5):.0f}, worst {max(floor):.0f})  "
        f"at most {MOST_OPENING:.0f}: {met}"
    )


async def open_empty(home: House) -> float:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(EMPTY)}\r\n"
        writer.write(f"{head}Connection: close\r\n\r\n{EMPTY}".encode())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        page = await (await home.window()).new_page()
        await page.goto(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
        await page.wait_for_function("window.__painted")
        took = float(await page.evaluate("window.__painted"))
        await page.context.close()
    return took


async def navigate(home: House) -> float:
    """A window of its own: nothing of the page is cached in it."""
    page = await (await home.window()).new_page()
    words = replied(MESSAGES // 2 - 1)
    await page.add_init_script(f"{WATCH}\n__watch.fromNavigation({words!r});")
    await page.goto(f"{home.url}#/s/{LONG_ID}")
    took = float(await page.evaluate("__watch.moment"))
    await page.context.close()
    return took


# -- frames


def tell_frames(name: str, found: Frames) -> None:
    print(f"  {name:<34} {found.told()}  at most {MOST_FRAME:.0f}: ", end="")
    print(verdict(found.worst <= MOST_FRAME))
    for line in found.blame() if found.worst > MOST_FRAME else ():
        print(f"      {line}")


async def idle(page: Page) -> None:
    async with frames(page) as found:
        await asyncio.sleep(IDLE_SECONDS)
    print(f"  {'floor: nothing happens':<34} {found.told()}")


async def scrolling(home: House) -> None:
    page = await tab(home, f"#/s/{LONG_ID}")
    tools = await Devtools.of(page)
    await page.get_by_text(replied(MESSAGES // 2 - 1)).wait_for()
    print(f"scrolling through {MESSAGES:,} messages and back, {SPEED:,} pixels a second:")
    await idle(page)
    async with frames(page) as found:
        await scroll_to(page, tools, 1, replied(0))
    tell_frames("to the first message", found)
    async with frames(page) as found:
        await scroll_to(page, tools, -1, replied(MESSAGES // 2 - 1))
    tell_frames("and back to the last", found)
    await page.context.close()


async def scroll_to(page: Page, tools: Devtools, way: int, words: str) -> None:
    box = await page.get_by_role("region", name="Transcript").bounding_box()
    assert box is not None
    middle = {"x": box["x"] + box["width"] / 2, "y": box["y"] + box["height"] / 2}
    found = page.get_by_text(words, exact=True)
    while await found.count() == 0:
        gesture = {"yDistance": way * STRETCH, "speed": SPEED, "gestureSourceType": "mouse"}
        await tools.ask("Input.synthesizeScrollGesture", **middle, **gesture)


async def crowding(home: House) -> None:
    print(f"a script that makes {NESTED:,} calls in waves:")
    page = await tab(home)
    await idle(page)
    async with frames(page) as found:
        await say(page, "Run a thousand")
        await expect(replies(page).last).to_have_text("They have run.", timeout=PATIENCE_MS)
    tell_frames("while it runs, to its end", found)
    await page.context.close()
    ours = [await cancel_late(home, "Run a thousand", MANY) for _ in range(CANCELS)]
    floor = [await cancel_late(home, "Run nothing", RUNNING) for _ in range(CANCELS)]
    print(
        f"  {'its bar cancelled, click to painted':<36} p50 {percentile(ours, 0.5):5.0f}  "
        f"worst {max(ours):5.0f} ms  (floor, a script that sleeps: "
        f"p50 {percentile(floor, 0.5):.0f}, worst {max(floor):.0f})"
    )


async def cancel_late(home: House, words: str, when: re.Pattern[str]) -> float:
    page = await tab(home)
    await say(page, words)
    await expect(replies(page).first).to_contain_text(when, timeout=PATIENCE_MS)
    await page.evaluate("__watch.cancelling()")
    await page.get_by_role("button", name="Cancel execute_code").click()
    took = float(await page.evaluate("__watch.moment"))
    await page.context.close()
    return took


# -- memory


async def remembering(home: House, turns: int) -> None:
    page = await tab(home)
    tools = await Devtools.of(page)
    print(
        f"a tab that stays open, {PACED} turns at a model's pace, then {FULL + turns:,} quick ones:"
    )
    async with frames(page) as streaming:
        for number in range(PACED):
            await say(page, f"Go on, number {number}")
            await page.get_by_role("button", name="Stop").wait_for()
            await page.get_by_role("button", name="Send").wait_for()
    tell_frames("while it streams", streaming)
    found: list[Left] = []
    for number in range(1, FULL + turns + 1):
        await say(page, f"Quickly {number}")
        await expect(replies(page).last).to_contain_text(f"Quickly {number}: done.")
        await page.get_by_role("button", name="Send").wait_for()
        if number % EACH == 0:
            found.append(await left(tools, number))
    tell_memory(found)
    await page.context.close()


def tell_memory(found: Sequence[Left]) -> None:
    full = [each for each in found if each.turns >= FULL]
    growth = slope([middle(tooth) for tooth in teeth(full)])
    for each in (found[0], full[0], full[-1]):
        tell_left(f"after {each.turns:,}", each)
    print(
        f"  {'growth after ' + format(full[0].turns, ','):<34} {growth:+.0f} bytes a turn  "
        f"at most {MOST_GROWTH:.0f}: {verdict(growth <= MOST_GROWTH)}"
    )


def teeth(found: Sequence[Left]) -> list[Sequence[Left]]:
    """Whole ones only."""
    each = PERIOD // EACH
    return [found[at : at + each] for at in range(0, len(found) - each + 1, each)]


def middle(tooth: Sequence[Left]) -> tuple[float, float]:
    count = len(tooth)
    return sum(each.turns for each in tooth) / count, sum(each.heap for each in tooth) / count


def tell_left(name: str, each: Left) -> None:
    print(
        f"  {name:<34} heap {each.heap / 1e6:6.2f} MB, {each.nodes:,} nodes, "
        f"{each.listeners:,} listeners"
    )


# -- size


async def size(home: House) -> None:
    """All that is not the API: with code coloured and the inspector open, nothing is left out."""
    page = await (await home.window()).new_page()
    tools = await Devtools.of(page)
    await tools.ask("Network.enable")
    paths: dict[str, str] = {}
    sizes: dict[str, float] = {}
    tools.hear(
        "Network.requestWillBeSent",
        lambda told: paths.update({told["requestId"]: path_of(str(told["request"]["url"]))}),
    )
    tools.hear(
        "Network.loadingFinished",
        lambda told: sizes.update({paths[told["requestId"]]: told["encodedDataLength"]}),
    )
    await page.goto(f"{home.url}#/s/{LONG_ID}")
    await page.get_by_text(replied(MESSAGES // 2 - 1)).wait_for()
    first = sum(each for path, each in sizes.items() if not path.startswith("/api/"))
    await page.get_by_role("button", name="Details of terminal").last.click()
    await page.get_by_role("tab", name="Call").wait_for()
    await page.locator(".hljs-keyword").first.wait_for(state="attached")
    whole = sum(each for path, each in sizes.items() if not path.startswith("/api/"))
    print(
        f"the page, as it is transferred: {first / 1000:.0f} KB to show a session, "
        f"{whole / 1000:.0f} KB in all  at most {MOST_SIZE / 1000:.0f}: "
        f"{verdict(whole <= MOST_SIZE)}"
    )
    await page.context.close()


def path_of(url: str) -> str:
    return urlsplit(url).path


async def measure(only: Sequence[str] | None, turns: int) -> None:
    parts: dict[str, Callable[[House], Awaitable[None]]] = {
        "size": size,
        "opening": opening,
        "scrolling": scrolling,
        "crowding": crowding,
        "memory": lambda home: remembering(home, turns),
    }
    with tempfile.TemporaryDirectory() as folder:
        async with house(Path(folder)) as home:
            for name in only or PARTS:
                await parts[name](home)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the page in a real Chromium.")
    parser.add_argument(
        "--turns", type=int, default=TURNS, help="after the page is full (long form: 3000)"
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="one part; may be repeated")
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(measure(options.only, options.turns))


if __name__ == "__main__":
    main()
