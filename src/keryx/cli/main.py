"""Parses the command line, loads the module of the command and runs it.

Nothing heavy is imported here: `keryx --help` must answer at once.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import ModuleType
from typing import Final, NamedTuple, cast

from keryx.cli.streams import OutputError
from keryx.errors import KeryxError

COMMANDS: Final = {
    "chat": "chat with an agent in the terminal",
    "run": "send one message to an agent and print its reply",
    "exec": "run a script in the sandbox with the tools, no model needed",
    "serve": "serve the page and the API",
    "gateway": "talk to agents from Telegram or through a signed webhook",
    "tokens": "make, list and revoke tokens for programs that use the API",
    "users": "add, list, limit and remove named users of `keryx serve`",
    "sessions": "list, show, search, export, import, replay, fork or delete sessions",
    "approvals": "list and remove approval rules, or test a command against them",
    "trust": "trust the MCP servers, hooks and skills of a folder, so that they are used",
    "memory": "list, search, add, edit, forget or export what agents remember",
    "models": "list the models of all providers, or download one that runs on this machine",
    "config": "show and change the settings in config.toml",
    "usage": "show tokens, cost and calls of tools",
    "tools": "list the tools, or call one by hand",
    "mcp": "connect to the MCP servers, and list their tools",
    "doctor": "check what works on this machine, and what confines commands",
    "demo": "show the runtime at work in half a minute; no key, no network",
}

NEEDS_WEB: Final = ("serve", "tokens", "users")
"""The commands that need the extra `web`."""

OWN_OPTIONS: Final = ("-h", "--help", "--version")
"""The options of `keryx` itself."""

WITHOUT_HOME: Final = ("demo",)
"""The commands that use a home of their own. All others have `--home`."""

FAILED: Final = 1
USAGE: Final = 2
FAULT: Final = 70
"""EX_SOFTWARE of sysexits.h."""
# Shells report a program that a signal ended as 128 plus the signal's number.
INTERRUPTED: Final = 130
BROKEN_PIPE: Final = 141

_HOME_HELP: Final = "where state lives; default: KERYX_HOME"

EPILOG: Final = """\
`keryx COMMAND --help` explains a command.

settings:
  Precedence: flags, KERYX_MODEL, config.toml, then OPENAI_* and other keys
  The home is --home, or KERYX_HOME, or the user's data folder; config.toml is there.

exit codes:
  0    done
  1    failed; standard error says why and what to do
  2    wrong usage; nothing was done
  3    run: the turn is parked; exec, tools call: the call was refused
  4    run: the answer does not fit the schema; tools call: the outcome is unknown
  70   an error in Keryx itself
  124  exec: the script timed out
  130  interrupted with Ctrl+C, or cancelled
  141  the reader of the output ended first
`keryx exec` ends with the exit code of its script.
"""


class Command(NamedTuple):
    """A command and its parsed options."""

    run: Callable[[argparse.Namespace], int]
    options: argparse.Namespace


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command in this process and return its exit code."""

    def work() -> int:
        command = parse(sys.argv[1:] if argv is None else argv)
        return command if isinstance(command, int) else command.run(command.options)

    return exit_code(work)


def parse(words: Sequence[str]) -> Command | int:
    """Return the command that these words name, or an exit code if there is none to run.

    argparse raises `SystemExit` for --help, --version and wrong words.
    """
    if (undecodable := _first_undecodable(words)) is not None:
        print(
            f"keryx: the argument {undecodable!a} is not UTF-8; write it in UTF-8, and rename a "
            "file or folder whose name is in another encoding",
            file=sys.stderr,
        )
        return USAGE
    name, words = _named_command(words)
    if name is None:
        command_parser().print_help()
        return USAGE
    if name not in COMMANDS:
        parser = command_parser()
        if not name.startswith("-"):
            parser.error(unknown("command", name, COMMANDS))
        parser.parse_args([name])  # --help, --version, or an error
        return USAGE
    module = _load(name)
    return Command(module.run, parser_of(name, module).parse_args(words))


def _named_command(words: Sequence[str]) -> tuple[str | None, Sequence[str]]:
    """Return the name of the command, and its words: --home may stand before the name.

    Options without a name are those of the chat, which also starts if a person types nothing more.
    """
    ahead, rest = _split_home(words)
    if not rest:
        is_at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
        return ("chat" if is_at_terminal else None), ahead
    first = rest[0]
    if first in OWN_OPTIONS or not first.startswith("-"):
        return first, (*ahead, *rest[1:])
    if (name := next((word for word in rest if word in COMMANDS), None)) is not None:
        command_parser().error(f'write "{first.partition("=")[0]}" after "{name}"')
    return "chat", words


def _split_home(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the --home at the beginning, with its value, and the rest."""
    if words and words[0].startswith("--home="):
        return words[:1], words[1:]
    return (words[:2], words[2:]) if words and words[0] == "--home" else ((), words)


def exit_code(work: Callable[[], int]) -> int:
    """Do the work and flush its output; an error becomes a line on stderr and an exit code."""
    try:
        try:
            code = work()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else FAILED
        sys.stdout.flush()
    except KeryxError as error:
        return _fail(FAILED, f"keryx: {error}")
    except KeyboardInterrupt:
        return _fail(INTERRUPTED, "interrupted")
    except OutputError as error:
        if error.is_reader_gone:
            return BROKEN_PIPE
        return _fail(
            FAILED,
            f"keryx: standard output cannot be written: {error.strerror}; free some space there, "
            "or redirect it elsewhere",
        )
    except Exception as error:
        if sys.flags.dev_mode:
            raise
        return _fail(
            FAULT,
            f"keryx: an error in Keryx itself: {type(error).__name__}: {error}; please report it, "
            "with the traceback that PYTHONDEVMODE=1 shows",
        )
    else:
        return code


def _fail(code: int, text: str) -> int:
    # Output that was printed before the error is still wanted, if it can be written.
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    print(text, file=sys.stderr)
    return code


def _first_undecodable(words: Sequence[str]) -> str | None:
    """Return the first word that is not UTF-8; Python reads its bytes as lone surrogates."""
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
    """Return the parser of `keryx` itself; it knows only the names of the commands."""
    parser = Parser(
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
    """Return the parser of one command."""
    command = module or _load(name)
    parser = Parser(prog=f"keryx {name}", description=command.__doc__)
    if name in WITHOUT_HOME:
        command.add_arguments(parser)
        return parser
    parser.add_argument("--home", help=_HOME_HELP)
    command.add_arguments(parser)
    for verb in parser.verbs().values():
        # Suppressed: a verb without the option must not take back what stands before the verb.
        verb.add_argument("--home", default=argparse.SUPPRESS, help=_HOME_HELP)
    return parser


def unknown(kind: str, word: str, choices: Iterable[str]) -> str:
    """Return an error text for a word that is none of these choices, with the nearest choice."""
    import difflib  # noqa: PLC0415 (only a wrong word needs it)

    names = list(choices)
    close = difflib.get_close_matches(word, names, n=1)
    advice = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
    return f'unknown {kind} "{word}"; {advice}'


class Parser(argparse.ArgumentParser):
    """An argument parser that says what to write instead of an unknown option."""

    def parse_args(  # pyright: ignore[reportIncompatibleMethodOverride] (one way to call it)
        self, words: Sequence[str]
    ) -> argparse.Namespace:
        verb = next((word for word in words if word in self.verbs()), None)
        # Looked for first: argparse would take the value of such an option for the verb.
        for word in words[: words.index(verb)] if verb is not None else ():
            if (option := word.partition("=")[0]) in self._misplaced(verb):
                self.error(f'write "{option}" after "{verb}"')
        options, surplus = self.parse_known_args(words)
        for word in surplus:
            if word.startswith("-"):
                names = sorted({*self._long_options(), *self._misplaced(verb)})
                self.error(unknown("option", word.partition("=")[0], names))
        if surplus:
            self.error(f'unexpected argument "{surplus[0]}"; quote a text that has spaces')
        return options

    def verbs(self) -> Mapping[str, Parser]:
        """Return the parsers of the verbs of a command by name; empty: it has none."""
        for action in self._actions:
            if isinstance(action.choices, Mapping):
                return cast("Mapping[str, Parser]", action.choices)
        return {}

    def _misplaced(self, verb: str | None) -> list[str]:
        """Return the long options that only the verb has, and not its command."""
        options = [] if verb is None else self.verbs()[verb]._long_options()
        return [option for option in options if option not in self._long_options()]

    def _check_value(self, action: argparse.Action, value: object) -> None:
        verbs = self.verbs()
        if isinstance(action.choices, Mapping) and value not in verbs:
            self.error(unknown("verb", f"{value}", verbs))
        super()._check_value(action, value)

    def _long_options(self) -> list[str]:
        return [name for name in self._option_string_actions if name.startswith("--")]


class _Version(argparse.Action):
    """Reads the version only for --version: the package's metadata takes long to load."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        metadata = importlib.import_module("importlib.metadata")
        print(f"keryx {metadata.version('keryx')}")
        parser.exit()
