"""Chat with an agent in the terminal. Also what `keryx` alone starts at a terminal.

While a turn runs, Enter queues a message, Alt+Enter steers and Ctrl+C stops. In a pipe, in a dumb
terminal and with --plain, the chat reads and prints plain lines.
"""

from __future__ import annotations

import argparse
import sys

from keryx.aio.loops import run_loop
from keryx.cli.session_flags import add_session_flags, begin_here


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-c", "--continue", dest="last", action="store_true", help="continue the last session"
    )
    add_session_flags(parser)
    parser.add_argument(
        "--plain", action="store_true", help="plain lines, for screen readers; moves no cursor"
    )
    parser.add_argument("--vi", action="store_true", help="edit the draft with the keys of vi")


def run(options: argparse.Namespace) -> int:
    if not options.last:
        begin_here(options)
    if _is_plain(options):
        from keryx.cli.chatting.plain.plain_chat import run_plain  # noqa: PLC0415 (loads the library)

        return run_loop(run_plain(options))
    return run_loop(_on_screen(options))


async def _on_screen(options: argparse.Namespace) -> int:
    # The packages of the screen are large, and plain lines do not need them.
    from keryx.cli.chatting.screen.screen_chat import ScreenChat  # noqa: PLC0415 (heavy)

    return await ScreenChat(options).run()


def _is_plain(options: argparse.Namespace) -> bool:
    if options.plain or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return True
    from prompt_toolkit.utils import is_dumb_terminal  # noqa: PLC0415 (a pipe does not need it)

    return is_dumb_terminal()
