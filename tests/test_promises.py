"""`docs/promises.md` and the suite agree, both ways.

A row lists the tests that prove it; those tests carry `@pytest.mark.promise` with the row's name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROW = re.compile(r"^\| `(?P<name>[\w.]+)` \| (?P<text>.+?) \| (?P<proof>.+?) \|$")
TEST = re.compile(r"`(tests/[\w/]+\.py(?:::\w+)?)`")
KINDS = ("not yet", "in part:", "`tests/", "`benchmarks/", "`make ")


def rows() -> dict[str, str]:
    proofs: dict[str, str] = {}
    for line in (ROOT / "docs/promises.md").read_text().splitlines():
        match = ROW.match(line)
        if match:
            assert match["name"] not in proofs, f"{match['name']} is promised twice"
            proofs[match["name"]] = match["proof"]
    return proofs


def listed() -> set[tuple[str, str]]:
    return {(name, test) for name, proof in rows().items() for test in TEST.findall(proof)}


def marked() -> set[tuple[str, str]]:
    marked_tests: set[tuple[str, str]] = set()
    for file in sorted((ROOT / "tests").rglob("test_*.py")):
        where = str(file.relative_to(ROOT))
        for test, name in marks(ast.parse(file.read_text())):
            marked_tests.add((name, f"{where}::{test}" if test else where))
    return marked_tests


def marks(module: ast.Module) -> Iterator[tuple[str, str]]:
    """The marks of a module: of a test by its name, of the whole module by no name."""
    for node in module.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for decorator in node.decorator_list:
                yield from ((node.name, name) for name in names(decorator))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            yield from (("", name) for name in names(node.value))


def names(mark: ast.expr) -> list[str]:
    if isinstance(mark, ast.List):
        return [name for element in mark.elts for name in names(element)]
    if not isinstance(mark, ast.Call) or ast.unparse(mark.func) != "pytest.mark.promise":
        return []
    return [ast.literal_eval(argument) for argument in mark.args]


def test_every_listed_test_is_marked_and_every_marked_test_is_listed() -> None:
    assert listed() - marked() == set(), "listed, but no such test carries the mark"
    assert marked() - listed() == set(), "marked, but not listed in docs/promises.md"


def test_every_row_says_how_it_is_proved_or_that_it_is_not() -> None:
    for name, proof in rows().items():
        assert proof.startswith(KINDS), f"{name}: {proof}"


def test_all_promises_are_there() -> None:
    expected = {
        *(f"000.{number}" for number in range(1, 9)),
        *(f"001.{number}" for number in range(1, 6)),
        *(f"002.{number}" for number in range(1, 5)),
        *(f"003.{number}" for number in range(1, 6)),
        *(f"004.{number}" for number in range(1, 15)),
        *(f"house.{number}" for number in range(1, 10)),
        *(f"sessions.{number}" for number in range(1, 7)),
        *(f"tools.{number}" for number in range(1, 8)),
        *(f"server.{number}" for number in range(1, 8)),
        *(f"page.{number}" for number in range(1, 12)),
        *(f"page20.{number}" for number in range(1, 9)),
        *(f"mended.{number}" for number in range(1, 22)),
        *(f"walls.{number}" for number in range(1, 14)),
        *(f"words.{number}" for number in range(1, 8)),
        *(f"kit.{number}" for number in range(1, 14)),
        *(f"chat.{number}" for number in range(1, 8)),
        *(f"term.{number}" for number in range(1, 7)),
        "front.1",
        *(f"model.{number}" for number in range(1, 9)),
        *(f"page20.{number}" for number in (*range(10, 25), *range(30, 38), 40)),
    }
    assert set(rows()) == expected


def test_what_the_rows_run_exists() -> None:
    for proof in rows().values():
        for file in re.findall(r"`(benchmarks/\w+\.py)`", proof):
            assert (ROOT / file).is_file(), file
