"""The settings in `config.toml`: shown without secrets, and changed only to what can be used.

Everything here uses the disk: call it in a thread.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from keryx.app.named_sets import with_named_sets
from keryx.app.tools import Tools
from keryx.config import DEFAULT, Config, ConfigurationError, check_text
from keryx.config.editing import CannotEditError, Change, ConfigFile, revision_of
from keryx.config.editing.secret_marks import SecretMarks
from keryx.config.editing.text_edits import value_at

_AT_LINE: Final = re.compile(r"at line (\d+)")
_BUILT_IN: Final = frozenset(("local", "scripted"))
"""Providers of models that need no entry."""
MODEL: Final = "model"


class FileProblem(msgspec.Struct, frozen=True):
    """Why the file cannot be used, and the line, if that can be said."""

    detail: str
    line: int | None


class ShownFile(msgspec.Struct, frozen=True):
    """The file as people see it. `revision` names its text; no document: it is not valid TOML."""

    path: str
    revision: str
    document: dict[str, Any] | None
    problem: FileProblem | None


class SettingsFile:
    """`config.toml` of one home."""

    def __init__(self) -> None:
        self._marks = SecretMarks()

    def show(self, config: Config) -> ShownFile:
        file = ConfigFile(config.settings_home)
        try:
            text = file.read()
        except CannotEditError as error:
            return ShownFile(str(file.path), "", None, FileProblem(str(error), None))
        try:
            document = self._marks.hidden(tomllib.loads(text))
        except tomllib.TOMLDecodeError:
            document = None
        return ShownFile(str(file.path), revision_of(text), document, problem_of(config, text))

    def change(
        self,
        config: Config,
        changes: Sequence[Change],
        *,
        revision: str | None = None,
        tools: Tools | None = None,
    ) -> None:
        """Write the changes, if the result can be used. `changes` may hold marks of secrets."""
        file = ConfigFile(config.settings_home)
        document = written_settings(config)
        for change in changes:
            _check_value(change.value)
        revealed = [
            msgspec.structs.replace(change, value=self._marks.revealed(change.value, document))
            for change in changes
        ]
        file.change(
            revealed,
            _checked(config, tools),
            revision=revision,
            shown=self._marks.hidden,
        )


def written_settings(config: Config) -> dict[str, Any]:
    """Return what `config.toml` says now, with secrets; nothing if it cannot be read."""
    try:
        return tomllib.loads(ConfigFile(config.settings_home).read())
    except (tomllib.TOMLDecodeError, CannotEditError):
        return {}  # a change reports it, and the screen shows it


def written_tables(config: Config, *path: str) -> dict[str, dict[str, Any]]:
    """Return the tables at this path of `config.toml`, by name, with secrets.

    The file may be wrong, since a person edits it: what should be a table and is none is empty.
    """
    tables = value_at(written_settings(config), path)
    if not isinstance(tables, dict):
        return {}
    items = cast("dict[str, Any]", tables).items()
    return {name: cast("Any", item) if isinstance(item, dict) else {} for name, item in items}


def _check_value(value: Any) -> None:
    """Raise `CannotEditError` for what TOML cannot express."""
    if value is None:
        raise CannotEditError("TOML has no null; leave `value` out to remove a setting")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise CannotEditError("numbers in TOML have at most 64 bits; use a smaller number")
    if isinstance(value, dict):
        for item in cast("dict[str, Any]", value).values():
            _check_value(item)
    if isinstance(value, list):
        for item in cast("list[Any]", value):
            _check_value(item)


def _checked(config: Config, tools: Tools | None) -> Callable[[str], None]:
    """Return a check of a new text, with the real reader."""

    def check(text: str) -> None:
        new = check_text(config, text, label="nothing was changed")
        if tools is not None:
            with_named_sets(tools, new)
        _check_models(config, new)

    return check


def _check_models(old: Config, new: Config) -> None:
    """Raise `ConfigurationError` if a new name of a model names no provider."""
    names = set(_models_of(old))
    for name in _models_of(new):
        provider, colon, rest = name.partition(":")
        if name in names or provider in _BUILT_IN:
            continue
        if not colon or not rest:
            raise ConfigurationError(
                f"{name!r} names no model; write provider:name, such as openai:gpt-5"
            )
        if not any(provider in profile.providers for profile in new.profiles.values()):
            providers = ", ".join(new.default.providers) or "none"
            raise ConfigurationError(
                f"there is no provider {provider!r} for the model {name}; add it first. "
                f"Configured providers are {providers}"
            )


def _models_of(config: Config) -> Iterable[str]:
    for profile in config.profiles.values():
        if profile.model:
            yield profile.model
        yield from profile.fallback
        yield from profile.auxiliary.values()


def problem_of(config: Config, text: str) -> FileProblem | None:
    """Return what is wrong with this text; None if it can be used."""
    error = _error_of(config, text)
    if error is None:
        return None
    at = _AT_LINE.search(error)
    return FileProblem(error, int(at[1]) if at else _line_of(config, text, error))


def _line_of(config: Config, text: str, error: str) -> int | None:
    """Return the first line with which the file has this error."""
    lines = text.splitlines(keepends=True)
    for count in range(1, len(lines) + 1):
        if lines[count - 1].strip() and _error_of(config, "".join(lines[:count])) == error:
            return count
    return None


def _error_of(config: Config, text: str) -> str | None:
    try:
        check_text(config, text)
    except ConfigurationError as error:
        return str(error)
    return None


def written_model(config: Config) -> tuple[str, ...] | None:
    """Return where `config.toml` names the default model; None if it does not."""
    document = written_settings(config)
    paths = (("profiles", DEFAULT, MODEL), (MODEL,))
    return next((path for path in paths if isinstance(value_at(document, path), str)), None)
