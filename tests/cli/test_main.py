"""The command line itself: what it says, what it refuses, and what it does not load for that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from keryx.cli.main import COMMANDS, main

# All that `keryx --help` may import beyond what Python has loaded by itself. Heavy parts stay out.
MAY_IMPORT = {
    *("keryx", "keryx.cli", "keryx.cli.main", "keryx.cli.streams", "keryx.errors"),
    # argparse and what it stands on
    *("argparse", "gettext", "locale", "os", "re", "shutil", "textwrap", "fnmatch"),
    *("bz2", "errno", "grp", "io", "lzma", "pwd", "select", "struct", "zlib"),
    # typing, importlib and what they stand on
    *("collections", "contextlib", "copyreg", "enum", "functools", "importlib", "itertools"),
    *("keyword", "operator", "reprlib", "types", "typing", "warnings"),
}


def keryx(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).with_name("keryx")), *words],
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_names_every_command_and_its_exit_code_is_zero() -> None:
    result = keryx("--help")
    assert result.returncode == 0
    for name in COMMANDS:
        assert name in result.stdout


@pytest.mark.promise("house.8")
def test_help_imports_only_what_is_listed() -> None:
    code = """
import sys
before = set(sys.modules)
from keryx.cli.main import main
try:
    main(["--help"])
except SystemExit:
    pass
print(*(set(sys.modules) - before), file=sys.stderr)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name for name in result.stderr.split() if "._" not in name}
    top = {name if name.startswith("keryx") else name.partition(".")[0] for name in loaded}
    assert {name for name in top if not name.startswith("_")} <= MAY_IMPORT


def test_without_a_command_it_says_what_there_is(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "commands" in capsys.readouterr().out


def test_an_unknown_command_is_refused_by_name() -> None:
    result = keryx("nonsense")
    assert result.returncode == 2
    assert 'unknown command "nonsense"; there are chat, run, exec' in result.stderr


def test_the_version_is_the_package_s() -> None:
    assert keryx("--version").stdout.startswith("keryx 0.")


def test_the_home_may_stand_before_and_after_the_command_and_the_verb(tmp_path: Path) -> None:
    run = keryx("run", "--home", str(tmp_path), "--model", "scripted:demo", "Hello")
    assert run.returncode == 0, run.stderr
    before = keryx("sessions", "--home", str(tmp_path), "list")
    after = keryx("sessions", "list", "--home", str(tmp_path))
    assert "Hello" in before.stdout
    assert after.stdout == before.stdout
    for words in (("--home", str(tmp_path)), (f"--home={tmp_path}",)):
        assert keryx(*words, "sessions", "list").stdout == before.stdout
    elsewhere = keryx("sessions", "--home", "wrong", "list", "--home", str(tmp_path))
    assert elsewhere.stdout == before.stdout


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("sessions", "--limit", "4", "list"), 'write "--limit" after "list"'),
        (("sessions", "--tag=work", "list"), 'write "--tag" after "list"'),
        (("sessions", "lst"), 'unknown verb "lst"; did you mean "list"?'),
        (("sessions", "list", "--limt", "4"), 'unknown option "--limt"; did you mean "--limit"?'),
        (("--home", "x", "rn"), 'unknown command "rn"; did you mean "run"?'),
        (("--model", "openai:x", "run", "hi"), 'write "--model" after "run"'),
        (("--sesion", "x"), 'unknown option "--sesion"; did you mean "--session"?'),
        (("tools", "--home", "x", "cal"), 'unknown verb "cal"; did you mean "call"?'),
    ],
)
def test_words_at_the_wrong_place_are_refused_with_the_right_one(
    words: tuple[str, ...], advice: str
) -> None:
    result = keryx(*words)
    assert result.returncode == 2
    assert advice in result.stderr
