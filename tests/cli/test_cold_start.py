"""`keryx run` loads no package of an optional part before a tool of that part is used."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from keryx.cli.optional_parts import requirements_of

pytestmark = pytest.mark.promise("kit.13")

PATIENCE = 60.0
"""Only reached by a test that fails."""
PROGRAM = """\
import json, sys
from keryx.cli.main import main
code = main(sys.argv[1:])
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""
SKILL = "---\nname: letters\ndescription: Writes letters.\n---\nWrite.\n"


def normal(name: str) -> str:
    return name.lower().replace("-", "_")


def modules_of_parts() -> set[str]:
    """The top modules of the packages of all optional parts, with what these need themselves."""
    modules: dict[str, set[str]] = {}
    for module, packages in metadata.packages_distributions().items():
        for package in packages:
            modules.setdefault(normal(package), set()).add(module)
    waiting = [normal(requirement.name) for requirement in requirements_of("all")]
    names: set[str] = set()
    while waiting:
        package = waiting.pop()
        if package in names or package not in modules:
            continue
        names.add(package)
        for text in metadata.requires(package) or ():
            if "extra ==" not in text:
                waiting += [normal(name) for name in re.findall(r"^[\w.-]+", text)]
    return {module for name in names for module in modules[name]}


def loaded(home: Path, *words: str) -> set[str]:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words, "--home", str(home), "--workspace", str(home)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert result.returncode == 0, result.stderr
    return set(json.loads(result.stderr.splitlines()[-1]))


def test_the_packages_of_all_parts_are_known() -> None:
    expected = {"trafilatura", "lxml", "pypdf", "playwright", "greenlet", "mcp", "ddgs", "litestar"}
    assert expected <= modules_of_parts()


def test_a_turn_loads_none_of_them(tmp_path: Path) -> None:
    (tmp_path / "skills" / "letters").mkdir(parents=True)
    (tmp_path / "skills" / "letters" / "SKILL.md").write_text(SKILL)
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "x", "enabled": false}}}')
    modules = loaded(tmp_path, "run", "--model", "scripted:demo", "Hello")
    assert "keryx.tools.toolsets" in modules, "the tools are offered all the same"
    tops = {name.partition(".")[0] for name in modules}
    assert sorted((tops & modules_of_parts()) - core_modules()) == []


def core_modules() -> set[str]:
    """What a turn may load: our own dependencies, with what these need."""
    code = "import sys, aiohttp, msgspec, rich.console, uvloop; print(*sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return {name.partition(".")[0] for name in result.stdout.split()}
