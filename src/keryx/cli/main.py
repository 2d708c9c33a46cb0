"""What `keryx` runs. It reads the words of the command and loads the one module that does it.

Nothing heavy is imported here: `keryx --help` must answer before a person notices.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Final, NamedTuple

from keryx.cli.streams import OutputError
from keryx.errors import KeryxError

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
FAULT: Final = 70
"""What sysexits.h calls EX_SOFTWARE."""
# What shells report for a program that a signal ended: 128 and the signal's number.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

EPILOG: Final = """\
`keryx COMMAND --help` says more about each.

exit codes:
  0    done
  1    failed; standard error says why and what to do
  2    wrong usage; nothing was done
  3    run: the turn is parked; exec, tools call: the call was refused
  4    run: the answer does not fit the schema; tools call: the outcome is unknown
  70   a fault in Keryx itself
  124  exec: the script's time was over
  130  interrupted with Ctrl+C, or cancelled
  141  whoever read the output is gone
`keryx exec` ends with the exit code of its script.
"""


class Command(NamedTuple):
    """A command with its options, ready to run."""

    run: Callable[[argparse.Namespace], int]
    options: argparse.Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command within this process; the result is the exit code."""

    def work() -> int:
        command = parse(sys.argv[1:] if argv is None else argv)
        return command if isinstance(command, int) else command.run(command.options)

    return exit_code(work)


def parse(words: Sequence[str]) -> Command | int:
    """The command that these words name, or the exit code if there is none to run.

    `SystemExit` is what argparse raises for --help, --version and wrong words.
    """
    if (unreadable := _first_that_is_no_text(words)) is not None:
        print(
            f"keryx: the argument {unreadable!a} is not UTF-8; write it in UTF-8, and rename a "
            "file or folder whose name is in another encoding",
            file=sys.stderr,
        )
        return USAGE
    if not words:
        command_parser().print_help()
        return USAGE
    if words[0] not in COMMANDS:
        command_parser().parse_args(words)  # --help, --version, or an error that names the commands
        return USAGE
    module = _load(words[0])
    return Command(module.run, parser_of(words[0], module).parse_args(words[1:]))


def exit_code(work: Callable[[], int]) -> int:
    """Do the work, to the last line that it prints; errors become a line of text and a code."""
    try:
        try:
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else FAILED
        sys.stdout.flush()
    except KeryxError as error:
        return _ended(FAILED, f"keryx: {error}")
    except KeyboardInterrupt:
        return _ended(INTERRUPTED, "interrupted")
    except OutputError as error:
        if error.is_reader_gone:
            return BROKEN_PIPE
        return _ended(
            FAILED,
            f"keryx: standard output cannot be written: {error.strerror}; free some space there, "
            "or redirect it elsewhere",
        )
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _ended(
            FAULT,
            f"keryx: a fault in Keryx itself: {type(error).__name__}: {error}; please report it, "
            "with what PYTHONDEVMODE=1 shows when it happens again",
        )
    else:
        return code


def _ended(code: int, text: str) -> int:
    # What was printed before the error belongs to the output, if it can still be written.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(text, file=sys.stderr)
    return code


def _first_that_is_no_text(words: Sequence[str]) -> str | None:
    """Bytes that are not UTF-8 come in as lone surrogates, which cannot be written down."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            return word
    return None


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


def command_parser() -> argparse.ArgumentParser:
    """The parser of `keryx` itself, which knows the commands by their names."""
    parser = argparse.ArgumentParser(
        prog="keryx",
        description="Runs AI agents whose work can be watched, steered, stopped and resumed.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for name, text in COMMANDS.items():
        commands.add_parser(name, help=text, description=text)
    return parser


def parser_of(name: str, module: ModuleType | None = None) -> argparse.ArgumentParser:
    """The parser of one command."""
    command = module or _load(name)
    parser = argparse.ArgumentParser(prog=f"keryx {name}", description=command.__doc__)
    command.add_arguments(parser)
    return parser


class _Version(argparse.Action):
    """Reads the version only if it is asked for: the package's metadata takes long to load."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        metadata = importlib.import_module("importlib.metadata")
        print(f"keryx {metadata.version('keryx')}")
        parser.exit()
