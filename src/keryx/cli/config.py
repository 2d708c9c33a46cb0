"""Show and change the settings in config.toml. Comments, order and formatting stay."""

from __future__ import annotations

import argparse
import sys
import tomllib
from typing import Any

import msgspec

from keryx.app.named_sets import with_named_sets
from keryx.app.own_tools import TOOLSET, load_now, names_in_use
from keryx.app.settings.fixed_settings import fixed_settings
from keryx.app.settings.settings_file import SettingsFile
from keryx.app.tools import Tools
from keryx.config import Config, defaults, load
from keryx.config.editing import Change, ConfigFile
from keryx.config.editing.text_edits import ABSENT, value_at
from keryx.errors import UserMustActError

KEY_HELP = "the setting, such as limits.steps"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    verbs.add_parser("path", help="print where config.toml is")
    get = verbs.add_parser("get", help="print a setting, or all, as JSON; secrets are hidden")
    get.add_argument("key", nargs="?", help=KEY_HELP)
    set_ = verbs.add_parser("set", help="change a setting; it holds from the next turn on")
    set_.add_argument("key", help=KEY_HELP)
    set_.add_argument("value", help='a value of TOML, such as 5, true or ["a", "b"]; else a text')
    unset = verbs.add_parser("unset", help="remove a setting, so that its default holds")
    unset.add_argument("key", help=KEY_HELP)


def run(options: argparse.Namespace) -> int:
    config = load(options.home)
    match options.verb:
        case "path":
            print(ConfigFile(config.settings_home).path)
        case "get":
            _print(config, () if options.key is None else _path(options.key))
        case "set":
            _change(config, Change(_path(options.key), _value(options.value)))
        case _:
            _change(config, Change(_path(options.key), ABSENT))
    return 0


def _print(config: Config, path: tuple[str, ...]) -> None:
    """Print what the file says, or the default."""
    document = SettingsFile().show(config).document or {}
    value = value_at(document, path)
    if value is ABSENT:
        value = value_at(defaults(), path)
    if value is ABSENT:
        raise UserMustActError(
            f"{'.'.join(path)} is not set, and there is no such setting with a default; "
            "`keryx config get` prints all that are set"
        )
    print(msgspec.json.format(msgspec.json.encode(value)).decode())


def _change(config: Config, change: Change) -> None:
    tools = Tools.built_in(config)
    own, _ = load_now(config.home, names_in_use(tools))
    tools = with_named_sets(tools.plus(TOOLSET, own), config)
    SettingsFile().change(config, (change,), tools=tools)
    for fixed in fixed_settings(config, None):
        if fixed.path == change.path:
            print(
                f"keryx: {fixed.by} is set to {fixed.value}, and wins over config.toml",
                file=sys.stderr,
            )


def _path(key: str) -> tuple[str, ...]:
    """Return the parts of a key as TOML reads it: a part in quotes may hold dots."""
    try:
        table: Any = tomllib.loads(f"{key} = 0")
    except tomllib.TOMLDecodeError:
        table = {}
    path: list[str] = []
    while isinstance(table, dict) and len(table) == 1:  # pyright: ignore[reportUnknownArgumentType]
        ((name, table),) = table.items()  # pyright: ignore[reportUnknownVariableType]
        path.append(name)  # pyright: ignore[reportUnknownArgumentType]
    if not path or "\n" in key:
        raise UserMustActError(f"{key!r} is not the name of a setting; write one as limits.steps")
    return tuple(path)


def _value(text: str) -> Any:
    try:
        values = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return values["value"] if len(values) == 1 else text
