"""What `keryx` runs. It reads the words of the command and loads the one module that does it.

Nothing heavy is imported here: `keryx --help` must answer before a person notices.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final

from keryx.errors import UserMustActError

COMMANDS: Final = {
    "run": "ask an agent once and print what it says",
    "exec": "run a script in the sandbox with the tools, no model needed",
    "serve": "serve the page and the API",
    "tokens": "make, list and revoke tokens for programs that use the API",
    "sessions": "list, show, search, fork or delete what was said, and what was changed",
    "approvals": "list what was allowed for always, and take it back",
    "usage": "say what was spent, by model",
    "tools": "list the tools, or call one by hand",
    "doctor": "say what works on this machine, and what protects it",
    "demo": "show what is special, in half a minute, with no key and no network",
}

NEEDS_WEB: Final = ("serve", "tokens")
"""What the extra `web` is for."""

FAILED: Final = 1
USAGE: Final = 2
# What shells report for a program that a signal ended: 128 and the signal's number.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; the result is the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        _parser().print_help()
        return USAGE
    if words[0] not in COMMANDS:
        _parser().parse_args(words)  # --help, --version, or an error that names the commands
        return USAGE
    command = _load(words[0])
    parser = argparse.ArgumentParser(prog=f"keryx {words[0]}", description=command.__doc__)
    command.add_arguments(parser)
    return _run(command.run, parser.parse_args(words[1:]))


def _load(name: str) -> ModuleType:
    try:
        return importlib.import_module(f"keryx.cli.{name}")
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if name not in NEEDS_WEB or missing == "keryx":
            raise
        print(
            f"keryx: `keryx {name}` needs {missing}; install it with: pip install 'keryx[web]'",
            file=sys.stderr,
        )
        sys.exit(FAILED)


def _run(run: Callable[[argparse.Namespace], int], options: argparse.Namespace) -> int:
    try:
        return run(options)
    except UserMustActError as error:
        print(f"keryx: {error}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read the output has gone. Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="keryx",
        description="Runs AI agents whose work can be watched, steered, stopped and resumed.",
        epilog="`keryx COMMAND --help` says more about each.",
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    return parser


class _Version(argparse.Action):
    """Reads the version only if it is asked for: the package's metadata takes long to load."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        metadata = importlib.import_module("importlib.metadata")
        print(f"keryx {metadata.version('keryx')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
