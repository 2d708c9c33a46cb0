"""The documents name the modules that there are: every one, and no other.

`docs/architecture.md` has a heading for each package and a row for each module. Elsewhere a
document names a module by its path (`engine/turns/turn.py`) or by its dotted name
(`keryx.ports.model`); both are looked up here. So are the events that the lifecycles name.
"""

from __future__ import annotations

import re
import typing
from importlib import import_module
from pathlib import Path

import pytest

from keryx.commands import Command
from keryx.events import LiveEvent, LoggedEvent

pytestmark = pytest.mark.promise("words.5")

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"
PACKAGE = re.compile(r"^### `(?P<name>[\w.]+)`$")
ROW = re.compile(r"^\| `(?P<name>\w+)` \| (?P<text>.+) \|$")
PATH = re.compile(r"(?<![\w/.])(?:[\w.-]+/)*\w+\.(?:py|tsx?)\b")
DOTTED = re.compile(r"`((?:keryx|keryx_tools)(?:\.\w+)+)`")
FILES = ("keryx.db",)
"""Names that look like those of modules."""
LINK = re.compile(r"\]\((?P<target>[^)#\s]+)(?:#[\w-]*)?\)")
EVENT = re.compile(
    r"(?<![\w/.])((?:approval|call|context|message|model|nested|question|session|step|"
    r"text|turn)\.(?!py\b|md\b)[a-z]+)\b"
)
CODE = re.compile(r"^```(?:python|diff|console)\n.*?^```$", re.MULTILINE | re.DOTALL)
"""What a guide adds is not there yet; that it works is tested in `tests/guides`."""
HISTORY = ("promises.md", "seeds.md")
"""Documents that name what was asked or decided at some time."""
DOCUMENTS = sorted(
    file
    for file in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
    if file.name not in HISTORY and file.parent.name != "decisions"
)
LIFECYCLES = sorted((ROOT / "docs/lifecycles").glob("*.md"))


def modules_on_disk() -> set[str]:
    return {name_of(file) for file in SOURCES.rglob("*.py")}


def name_of(file: Path) -> str:
    parts = file.relative_to(SOURCES).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def modules_in_document() -> list[str]:
    names: list[str] = []
    package = ""
    for line in (ROOT / "docs/architecture.md").read_text().splitlines():
        if heading := PACKAGE.match(line):
            package = heading["name"]
            names.append(package)
        elif (row := ROW.match(line)) and package:
            names.append(f"{package}.{row['name']}")
    return names


def test_every_module_is_in_the_architecture() -> None:
    assert sorted(modules_on_disk() - set(modules_in_document())) == []


def test_every_module_in_the_architecture_exists_and_is_named_once() -> None:
    names = modules_in_document()
    assert sorted(set(names) - modules_on_disk()) == []
    assert len(names) == len(set(names))


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_module_that_a_document_names_exists(file: Path) -> None:
    text = CODE.sub("", file.read_text())
    roots = (ROOT, SOURCES, SOURCES / "keryx")
    missing = [
        path for path in PATH.findall(text) if not any((root / path).exists() for root in roots)
    ]
    assert [path for path in missing if "/" in path] == []
    assert [name for name in DOTTED.findall(text) if name not in FILES and not exists(name)] == []


def exists(name: str) -> bool:
    """Whether that is a module, or something in one."""
    module, _, attribute = name.rpartition(".")
    if name in modules_on_disk():
        return True
    return module in modules_on_disk() and hasattr(import_module(module), attribute)


@pytest.mark.parametrize("file", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_to_a_file_leads_somewhere(file: Path) -> None:
    targets = [target for target in LINK.findall(file.read_text()) if "://" not in target]
    assert [target for target in targets if not (file.parent / target).exists()] == []


@pytest.mark.parametrize("file", LIFECYCLES, ids=lambda file: str(file.relative_to(ROOT)))
def test_every_event_of_a_lifecycle_exists(file: Path) -> None:
    names = set(EVENT.findall(file.read_text()))
    assert names, "a lifecycle names the events that mark it"
    kinds = (*typing.get_args(LoggedEvent), *typing.get_args(LiveEvent), *typing.get_args(Command))
    assert sorted(names - {kind.__struct_config__.tag for kind in kinds}) == []
