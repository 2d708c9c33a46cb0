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
    found = [str(file.relative_to(ROOT)) for file in SOURCES if lines(file) > LONG]
    assert len(found) <= MOST_LONG_MODULES, found


def test_functions_fit_a_screen() -> None:
    found = [
        f"{file.name}: {node.name}"
        for file in SOURCES
        for node in functions(file)
        if (node.end_lineno or 0) - node.lineno + 1 > MOST_FUNCTION_LINES
    ]
    assert found == []


def test_packages_are_small_and_modules_are_named_by_what_they_hold() -> None:
    for package in {file.parent for file in SOURCES}:
        modules = [file.stem for file in package.glob("*.py") if file.stem != "__init__"]
        # The command line has one module for each command, and nobody reads all of them.
        assert len(modules) <= MOST_MODULES or package.name == "cli", package
        assert not SHAPELESS & set(modules)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_module_says_what_it_owns(file: Path) -> None:
    assert ast.get_docstring(ast.parse(file.read_text()))
