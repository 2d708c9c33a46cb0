"""Opinions as tests: how large things may be, how they are named, what each says of itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

MOST_LINES = 500
LONG = 300
MOST_LONG_MODULES = 6
"""A ratchet: it may only go down."""
MOST_FUNCTION_LINES = 50
MOST_MODULES = 10
VAGUE = {"found", "told", "made", "known", "asked", "kept", "wanted", "each"}
"""Names that say how a thing came; the ones below are fields of events, files and public types."""
MOST_VAGUE = 10
"""A ratchet: it may only go down."""
SHAPELESS = {"utils", "util", "helpers", "common", "manager", "base", "misc"}


def functions(file: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def lines(file: Path) -> int:
    return len(file.read_text().splitlines())


@pytest.mark.parametrize("file", [*SOURCES, *TESTS], ids=lambda file: str(file.relative_to(ROOT)))
def test_no_module_is_too_long(file: Path) -> None:
    assert lines(file) <= MOST_LINES


def test_few_modules_are_long() -> None:
    long = [str(file.relative_to(ROOT)) for file in SOURCES if lines(file) > LONG]
    assert len(long) <= MOST_LONG_MODULES, long


def test_functions_fit_a_screen() -> None:
    long = [
        f"{file.name}: {node.name}"
        for file in SOURCES
        for node in functions(file)
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert long == []


def bound_names(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text())):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name
            case ast.arg(arg=name):
                yield name
            case _:
                pass


@pytest.mark.promise("words.1")
def test_names_say_what_a_thing_is() -> None:
    vague = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in SOURCES
        for name in bound_names(file)
        if name.strip("_") in VAGUE
    ]
    assert len(vague) <= MOST_VAGUE, vague


def test_packages_are_small_and_modules_are_named_by_what_they_hold() -> None:
    for package in {file.parent for file in SOURCES}:
        modules = [file.stem for file in package.glob("*.py") if file.stem != "__init__"]
        # One module for each command, or for each interface: nobody reads all of them.
        assert len(modules) <= MOST_MODULES or package.name in ("cli", "ports"), package
        assert not SHAPELESS & set(modules)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_says_what_it_owns(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text()))
