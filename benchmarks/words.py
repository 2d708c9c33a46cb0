"""How plainly the sources speak, in figures: vague names, undocumented modules, single importers.

A *bound name* is a name that code gives to something: a variable, a parameter, a loop variable, an
attribute that is assigned, a function, a class. A name is *vague* if it says how a thing came, and
not what it is. `python benchmarks/words.py --show` names the places.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
VAGUE: Final = frozenset({"found", "told", "made", "known", "asked", "kept", "wanted", "each"})
PACKAGES: Final = ("keryx", "keryx_tools", "hermes_tools")


def bound_names(tree: ast.AST) -> Generator[tuple[str, int]]:
    """Every name that the code binds, with its line."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store(), lineno=line):
                yield name, line
            case ast.Attribute(attr=name, ctx=ast.Store(), lineno=line):
                yield name, line
            case ast.arg(arg=name, lineno=line):
                yield name, line
            case (
                ast.FunctionDef(name=name, lineno=line)
                | ast.AsyncFunctionDef(name=name, lineno=line)
                | ast.ClassDef(name=name, lineno=line)
            ):
                yield name, line
            case _:
                pass


def is_vague(name: str) -> bool:
    return name.strip("_") in VAGUE


def sources(*folders: str) -> list[Path]:
    return sorted(file for folder in folders for file in (ROOT / folder).rglob("*.py"))


def vague_rate(files: Iterable[Path], *, show: bool) -> float:
    """Vague names among a thousand bound ones."""
    count = vague = 0
    words: Counter[str] = Counter()
    for file in files:
        for name, line in bound_names(ast.parse(file.read_text())):
            count += 1
            if is_vague(name):
                vague += 1
                words[name.strip("_")] += 1
                if show:
                    print(f"  {file.relative_to(ROOT)}:{line}: {name}")
    if show:
        print("  ", dict(words.most_common()))
    return 1_000 * vague / count


def module_name(file: Path) -> str:
    parts = file.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def undocumented(files: Iterable[Path]) -> list[str]:
    """Modules whose names no document mentions."""
    texts = " ".join(
        file.read_text()
        for file in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))
        if file.name != "promises.md"
    )
    words = set(
        texts.replace("`", " ").replace("/", " ").replace(".", " ").replace(",", " ").split()
    )
    names = (module_name(file) for file in files if file.name != "__init__.py")
    return [name for name in names if name.rpartition(".")[2] not in words]


def imported(tree: ast.AST, modules: set[str]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names & modules


def single_importers(files: list[Path]) -> list[str]:
    """Modules that exactly one other module imports."""
    modules = {module_name(file) for file in files}
    importers = Counter(
        module for file in files for module in imported(ast.parse(file.read_text()), modules)
    )
    return sorted(module for module, count in importers.items() if count == 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="name the places")
    options = parser.parse_args()
    files = sources(*(f"src/{package}" for package in PACKAGES))
    tests = sources("tests", "benchmarks")
    print(f"vague names in 1,000, sources        {vague_rate(files, show=options.show):8.1f}")
    print(f"vague names in 1,000, tests          {vague_rate(tests, show=options.show):8.1f}")
    for title, names in (
        ("modules that no document mentions", undocumented(files)),
        ("modules with a single importer", single_importers(files)),
    ):
        print(f"{title:<36} {len(names):8}")
        if options.show:
            print("  ", *names)
    print(f"{'modules':<36} {len(files):8}")
    print(f"{'lines':<36} {sum(len(file.read_text().splitlines()) for file in files):8}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
