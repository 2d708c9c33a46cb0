"""The settings of hooks, and the reader of a file with hooks.

A hook that cannot be used is an error: a hook that guards something must not be left out silently.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Annotated, Any, Final, cast

import msgspec

from keryx.decoding import convert
from keryx.ports.hook_programs import HookEvent

DEFAULT_TIMEOUT: Final = 30.0
LONGEST_NAME: Final = 60
"""Characters of the name that is made from a command."""
SHELL: Final = ("/bin/sh", "-c")


class HookSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One hook: when it runs, for which tools, and what."""

    event: HookEvent
    command: str | tuple[str, ...]
    """A program with its arguments, or a text for the shell."""
    match: str | tuple[str, ...] = "*"
    """Patterns (* and ?) of names of tools."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=600)] = DEFAULT_TIMEOUT
    """Seconds."""
    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """What the log and the model call it; by default, its command."""
    confined: bool = False
    """Whether it runs within the same walls as the commands of a session."""

    def __post_init__(self) -> None:
        """Raise `ValueError`, with what to do, if a value cannot be used."""
        if not self.argv[-1].strip() or not self.argv[0].strip():
            raise ValueError("`command` is empty; name a program")
        if not self.patterns or not all(self.patterns):
            raise ValueError("`match` is empty; write names of tools, or * for all")
        if any("\0" in text for text in (*self.argv, *self.patterns, self.name)):
            raise ValueError("a text contains a NUL character; remove it")

    @property
    def argv(self) -> tuple[str, ...]:
        if isinstance(self.command, str):
            return (*SHELL, self.command)
        return self.command or ("",)

    @property
    def patterns(self) -> tuple[str, ...]:
        return (self.match,) if isinstance(self.match, str) else self.match

    @property
    def label(self) -> str:
        """The name of the hook, for people."""
        command = self.command if isinstance(self.command, str) else shlex.join(self.command)
        return self.name or " ".join(command.split())[:LONGEST_NAME]


def parse_hooks(entries: object) -> tuple[HookSettings, ...]:
    """Turn the entries of `[[hooks]]` into settings; `ValueError` says what to correct."""
    if not isinstance(entries, list):
        raise ValueError("write each hook as a table: [[hooks]]")  # noqa: TRY004 (it is a wrong value of a file)
    hooks: list[HookSettings] = []
    for number, entry in enumerate(cast("list[object]", entries), start=1):
        try:
            if not isinstance(entry, Mapping):
                raise ValueError("write it as a table: [[hooks]]")  # noqa: TRY004, TRY301 (a wrong value of a file)
            fields = cast("Mapping[str, Any]", entry)
            _check_names(fields)
            hooks.append(convert(fields, HookSettings))
        except ValueError as error:
            raise ValueError(f"hook {number} of [[hooks]]: {error}") from error
    return tuple(hooks)


def _check_names(fields: Mapping[str, object]) -> None:
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    names = [field.name for field in msgspec.structs.fields(HookSettings)]
    for name in fields:
        if name not in names:
            close = difflib.get_close_matches(name, names, n=1)
            advice = f'did you mean "{close[0]}"?' if close else f"there are {', '.join(names)}"
            raise ValueError(f'unknown setting "{name}"; {advice}')
