"""The browser tools: one Chromium with one page for each session, in the session's place."""

from keryx.tools.browser.requirements import missing
from keryx.tools.browser.tools import browser_tools

__all__ = ["browser_tools", "missing"]
