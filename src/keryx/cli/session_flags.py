"""The flags of `keryx run` and `keryx chat` that are settings of a session.

A new session begins with them. A session that is continued is changed by them before anything is
sent to it; a flag that is absent changes nothing. So none of them is ever ignored.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, Final

from keryx.cli.values import folder, usable_folder
from keryx.errors import UserMustActError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from keryx.app import Keryx, SessionHandle

DEFAULT: Final = "default"
"""The profile of new sessions, and the word for its personality."""
APPROVE_HELP: Final = "which calls need approval; ask: all that change something; auto: risky ones"


def add_session_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--session", help="continue this session; other flags change its settings")
    parser.add_argument("--model", help="provider:name; default: KERYX_MODEL, or config.toml")
    parser.add_argument("--workspace", type=folder, help="the folder to work in; default: this")
    parser.add_argument("--personality", help="a personality from config.toml")
    parser.add_argument("--tools", help="only these tools and toolsets, comma-separated; '': none")
    parser.add_argument("--approve", choices=("ask", "auto", "never"), help=APPROVE_HELP)
    parser.add_argument(
        "--read-only",
        action=argparse.BooleanOptionalAction,
        help="refuse calls that change anything, or no longer",
    )


def begin_here(options: argparse.Namespace) -> None:
    """Let a new session begin in this folder, unless a flag names another.

    Exit code 2, with the reason, if this folder cannot be used. A session that is continued has its
    own.
    """
    if options.session is None and options.workspace is None:
        options.workspace = usable_folder(".")


def tool_names(options: argparse.Namespace) -> list[str] | None:
    """Return the names that --tools lists; None: the flag is absent."""
    if options.tools is None:
        return None
    return [name for part in options.tools.split(",") if (name := part.strip())]


async def check_new(app: Keryx, options: argparse.Namespace) -> str:
    """Check the flags of a new session; return a warning, or nothing.

    `UserMustActError` or `ModelError` if a turn could not even begin.
    """
    if options.model is not None:
        app.host_client.models.find(options.model)
    if (names := tool_names(options)) is not None:
        (await app.host_client.tools_to_choose()).chosen(names)
    try:
        _check_personality(app, DEFAULT, options.personality)
    except UserMustActError as error:
        return str(error)
    return ""


async def change_session(
    app: Keryx, session: SessionHandle, options: argparse.Namespace
) -> dict[str, Any]:
    """Change a session that is continued as the flags say; return what was changed."""
    settings = (await session.view()).settings
    changes: dict[str, Any] = {}
    if options.model is not None:
        app.host_client.models.check(options.model)
        changes["model"] = options.model
    if (names := tool_names(options)) is not None:
        changes["tools"] = (await app.host_client.tools_to_choose()).chosen(names)
    if options.personality is not None:
        name = None if options.personality == DEFAULT else options.personality
        _check_personality(app, settings.profile, name)
        changes["personality"] = name
    if options.workspace is not None:
        changes["workspace"] = str(options.workspace)
    if options.approve is not None:
        changes["approvals"] = options.approve
    if options.read_only is not None:
        changes["read_only"] = options.read_only
    new = {name: value for name, value in changes.items() if getattr(settings, name) != value}
    if new:
        await session.change(**new)
    return new


def in_words(changes: Mapping[str, Any]) -> str:
    """Return what `change_session` changed, for the person."""
    words = [f"{name.replace('_', ' ')} {_value(value)}" for name, value in changes.items()]
    return f"Changed for this session: {'; '.join(words)}."


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None:
        return DEFAULT
    return value if isinstance(value, str) else ", ".join(value) or "none"


def _check_personality(app: Keryx, profile: str, name: str | None) -> None:
    names = app.host_client.config.profile(profile).personalities
    if name is not None and name not in names:
        raise UserMustActError(
            f"there is no personality {name!r}; there are {', '.join(names) or 'none yet'}"
        )
