"""The guest runs where Keryx itself does not: on Python 3.8, with its standard library alone."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

SOURCES = Path(__file__).parents[2] / "src"
OURS = {"keryx_tools", "hermes_tools"}
FILES = [file for name in sorted(OURS) for file in sorted((SOURCES / name).rglob("*.py"))]
# What 3.8 cannot subscript; in annotations, which it does not look at, it may stand.
BARE = {"dict", "list", "set", "frozenset", "tuple", "type"}


@pytest.fixture(params=FILES, ids=lambda file: str(file.relative_to(SOURCES)))
def tree(request: pytest.FixtureRequest) -> ast.Module:
    file: Path = request.param
    return ast.parse(file.read_text(), feature_version=(3, 8))


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """All that runs: no annotations, and nothing that only type checkers see."""
    for name, field in ast.iter_fields(node):
        if name in {"annotation", "returns"}:
            continue
        if name == "body" and isinstance(node, ast.If) and is_for_checkers(node.test):
            continue
        for child in cast("list[object]", field) if isinstance(field, list) else [field]:
            if isinstance(child, ast.AST):
                yield child
                yield from evaluated(child)


def is_for_checkers(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def test_it_imports_nothing_but_the_standard_library_and_itself(tree: ast.Module) -> None:
    allowed = sys.stdlib_module_names | OURS
    assert {name for name in imported(tree) if name.partition(".")[0] not in allowed} == set()


def test_it_uses_no_types_that_old_pythons_cannot_evaluate(tree: ast.Module) -> None:
    faults = [
        ast.unparse(node)
        for node in evaluated(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and node.value.id in BARE
    ]
    assert faults == []


def test_annotations_are_not_evaluated(tree: ast.Module) -> None:
    annotated = any(
        isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None
        for node in ast.walk(tree)
    )
    assert not annotated or "__future__" in set(imported(tree))
