"""Creates the providers that the configuration names; one that cannot be used is left out.

A wrong configuration is an error: a name that does not exist, a setting that is missing or wrong.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec

from keryx.app.runtime import Runtime
from keryx.config import Config
from keryx.errors import StoreError, UnsupportedError, UserMustActError
from keryx.memory.providers.left_out import LeftOut
from keryx.ports.memory import EditedByPeople, MemoryEdits, MemoryProvider, TurnSearch

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from keryx.memory.memory_file import MemoryFile

NOTES: Final = "memory"
"""The folder of the files of notes in the home."""
GROUP: Final = "keryx.memory"
"""The entry points of packages with providers: functions of the settings, as a dictionary."""
_METHODS: Final = ("store", "recall", "context", "remaining", "close")
_OWN_WORDS: Final = "words"
"""The name of the search that every memory has."""
_LONGEST: Final = 300
"""Characters of an error."""
Report = Callable[[str, BaseException], None]


class MissingSettingError(KeyError):
    """A provider looked for a setting that the configuration does not have."""


class ProviderSettings(dict[str, Any]):
    """The settings of a provider. To miss one is an error of the configuration, no defect."""

    def __missing__(self, name: str) -> NoReturn:
        raise MissingSettingError(name)


class Providers(msgspec.Struct, frozen=True):
    """The configured providers: those that can be used, and those that are left out."""

    usable: tuple[MemoryProvider, ...]
    left_out: tuple[LeftOut, ...]
    aliases: Mapping[str, str]
    """The name in the configuration, for each that calls itself differently."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names under which deliveries are made or wait."""
        return tuple(provider.name for provider in (*self.usable, *self.left_out))


class UnusableError(Exception):
    """The provider cannot be used; the text says why and what to do."""


def create_providers(
    runtime: Runtime, config: Config, file: MemoryFile, edits: MemoryEdits, report: Report
) -> Providers:
    """Create the providers by name, in a thread; `UserMustActError` if there is no such one."""
    built_in: Mapping[str, Callable[[], MemoryProvider]] = {
        "notes": partial(_notes, runtime, config, edits),
        "vector": partial(_vector, runtime, config, file, report),
        "honcho": partial(_honcho, runtime, config, file),
    }
    usable: dict[str, MemoryProvider] = {}
    left_out: list[LeftOut] = []
    for name in dict.fromkeys(config.memory.providers):
        try:
            usable[name] = (
                _built_in(name, built_in[name])
                if name in built_in
                else _installed(_entry_point(name, built_in), config.memory.settings.get(name, {}))
            )
        except UnusableError as error:
            left_out.append(LeftOut(name, str(error)))
    names = [provider.name for provider in usable.values()]
    _check_names(names)
    aliases = {p.name: name for name, p in usable.items() if name != p.name and name not in names}
    free = tuple(provider for provider in left_out if provider.name not in names)
    return Providers(tuple(usable.values()), free, aliases)


def _entry_point(name: str, built_in: Mapping[str, object]) -> EntryPoint:
    from importlib.metadata import entry_points  # noqa: PLC0415 (slow, and rarely needed)

    installed = {point.name: point for point in entry_points(group=GROUP)}
    if name not in installed:
        raise UserMustActError(_unknown(name, [*built_in, *installed]))
    return installed[name]


def _built_in(name: str, create: Callable[[], MemoryProvider]) -> MemoryProvider:
    try:
        return create()
    except (StoreError, UnsupportedError) as error:
        raise UnusableError(f"the memory provider {name!r} cannot be used: {error}") from error
    except UserMustActError:
        raise
    except Exception as error:
        raise UnusableError(
            f"the memory provider {name!r} cannot be used: {_short(error)}; install Keryx again "
            "with what the provider needs, or take it out of `providers`, then start Keryx again"
        ) from error


def _installed(point: EntryPoint, settings: Mapping[str, Any]) -> MemoryProvider:
    """Create the provider of a package."""
    try:
        provider: Any = point.load()(ProviderSettings(settings))
        name = provider.name
        missing = [part for part in _METHODS if not callable(getattr(provider, part, None))]
        # What else it can do is looked at later: here a defect in it is noticed.
        _ = isinstance(provider, EditedByPeople), isinstance(provider, TurnSearch)
    except MissingSettingError as error:
        raise UserMustActError(_unusable(point, f"it misses the setting {error}")) from error
    except (StoreError, UnsupportedError) as error:
        raise UnusableError(_unusable(point, f"{error}")) from error
    except UserMustActError:
        raise
    except (Exception, SystemExit) as error:
        raise UnusableError(_unusable(point, _short(error))) from error
    if not (isinstance(name, str) and name):
        raise UnusableError(_unusable(point, f"its name is {name!r}"))
    if missing:
        raise UnusableError(_unusable(point, f"it has no method {missing[0]!r}"))
    return provider


def _short(error: BaseException) -> str:
    """Return an error with its kind; it is shown in every turn, and may quote a whole file."""
    text = repr(error)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _unusable(point: EntryPoint, reason: str) -> str:
    return (
        f"the memory provider {point.name!r} ({point.value}) cannot be used: {reason}; check "
        f"[memory.settings.{point.name}] in config.toml and the package, or take it out of "
        "`providers`, then start Keryx again"
    )


def _check_names(own: Sequence[str]) -> None:
    """Raise `UserMustActError` if two providers have one name: what each has stored is by name."""
    names = [_OWN_WORDS, *own]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise UserMustActError(
            f"two providers of [memory] in config.toml call themselves {doubled!r}; take one of "
            "them out of `providers`"
        )


def _notes(runtime: Runtime, config: Config, edits: MemoryEdits) -> MemoryProvider:
    # Imported only here: a host without it starts faster.
    notes: Any = importlib.import_module("keryx.memory.providers.notes.provider")
    return notes.NotesProvider(
        config.home / NOTES, runtime.bridge, edits=edits, wall=runtime.scope.clock.wall
    )


def _vector(runtime: Runtime, config: Config, file: MemoryFile, report: Report) -> MemoryProvider:
    opening: Any = importlib.import_module("keryx.memory.providers.vector.opening")
    return opening.open_index(config.home, runtime.scope, runtime.bridge, file, report)


def _honcho(runtime: Runtime, config: Config, file: MemoryFile) -> MemoryProvider:
    module: Any = importlib.import_module("keryx.memory.providers.honcho.provider")
    honcho = config.memory.honcho
    return module.HonchoProvider(
        file,
        runtime.bridge,
        url=honcho.url,
        api_key=honcho.api_key,
        workspace=honcho.workspace,
        clock=runtime.scope.clock,
    )


def _unknown(name: str, names: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 (only a wrong name needs it)

    close = difflib.get_close_matches(name, names, n=1)
    advice = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(names)}"
    return f"[memory] in config.toml names the provider {name!r}, which does not exist; {advice}"
