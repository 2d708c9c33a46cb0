"""A host with a browser, for a test that kills it: `python -m tests.tools.browser.doomed_host`.

It opens a page in a folder, writes the marker of its processes to standard output, and waits.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from tests.tools.browser.browser_session import browser_session


async def main(folder: Path) -> None:
    async with browser_session(folder) as browser:
        await browser.opens("<title>Doomed</title>")
        sys.stdout.write(f"{browser.marker}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
