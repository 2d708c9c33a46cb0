"""`config.toml`: shown without secrets, and changed without losing what a person wrote there."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from litestar import get, patch
from litestar.params import JSONBody
from msgspec import UNSET, Meta, UnsetType

from keryx.app.settings.fixed_settings import FixedSetting, fixed_settings
from keryx.app.settings.settings_file import FileProblem, ShownFile
from keryx.config import defaults
from keryx.config.editing import Change
from keryx.server.problems import conflict
from keryx.server.routes.params import TheService
from keryx.server.schemas import Key, Word
from keryx.server.service import Service

Path = Annotated[tuple[Word, ...], Meta(min_length=1, max_length=8)]


class SettingsShown(msgspec.Struct, frozen=True, kw_only=True):
    """The content of config.toml, by tables. An object `{"$secret": ...}` stands for a secret.

    `problem` says why the file cannot be used, if so; without a `document` it is not valid TOML.
    """

    path: str
    revision: str
    document: dict[str, Any] | None
    defaults: dict[str, Any]
    fixed: tuple[FixedSetting, ...]
    problem: FileProblem | None


class SettingChange(msgspec.Struct, frozen=True, kw_only=True):
    """`before` is what was there when it was read. No `before`: nothing was. No `value`: remove."""

    path: Path
    value: Any | UnsetType = UNSET
    before: Any | UnsetType = UNSET


class SettingsChange(msgspec.Struct, frozen=True):
    """Changes that take effect together, or not at all. `revision` is the one that was read."""

    revision: Key
    changes: Annotated[tuple[SettingChange, ...], Meta(min_length=1, max_length=100)]


@get("/api/settings")
async def show(service: TheService) -> SettingsShown:
    """The settings as they are in config.toml, the defaults, and what cannot be changed there."""
    return await _shown(service)


@patch("/api/settings")
async def change(service: TheService, data: JSONBody[SettingsChange]) -> SettingsShown:
    """Change config.toml. Comments, order and formatting stay; it holds from the next turn on.

    If the file changed after `revision`, other settings are merged; a change of the same setting
    is refused with 409 (`changed_meanwhile`). What could not be read back is refused with 422.
    """
    client = service.host_client
    fixed = {setting.path: setting.by for setting in _fixed(service)}
    for item in data.changes:
        if item.path in fixed:
            name = ".".join(item.path)
            raise conflict(
                f"{name} is set by {fixed[item.path]}", "change it where you start Keryx"
            )
    changes = [Change(item.path, item.value, item.before) for item in data.changes]
    tools = await client.tools_to_choose()
    await client.to_thread(
        lambda: service.settings_file.change(
            client.config, changes, revision=data.revision, tools=tools
        )
    )
    await client.reconfigure()
    return await _shown(service)


def _fixed(service: Service) -> tuple[FixedSetting, ...]:
    models = service.host_client.models
    requested = models.default if models.is_requested else None
    return fixed_settings(service.host_client.config, requested)


async def _shown(service: Service) -> SettingsShown:
    client = service.host_client
    file: ShownFile = await client.to_thread(lambda: service.settings_file.show(client.config))
    return SettingsShown(
        path=file.path,
        revision=file.revision,
        document=file.document,
        defaults=defaults(),
        fixed=_fixed(service),
        problem=file.problem,
    )


ROUTES = (show, change)
