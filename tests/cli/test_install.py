"""`keryx doctor --install NAME`, in an environment of its own, with a folder as the index."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.promise("kit.8")

PATIENCE = 120.0
"""Only reached by a test that fails."""
METADATA = """\
Metadata-Version: 2.1
Name: keryx
Version: 0.1.0
Provides-Extra: all
Provides-Extra: browser
Provides-Extra: elsewhere
Provides-Extra: gone
Provides-Extra: tiny
Requires-Dist: keryx[tiny,elsewhere]; extra == 'all'
Requires-Dist: tiny-part>=1; extra == 'tiny'
Requires-Dist: never-there; (sys_platform == 'nowhere') and extra == 'elsewhere'
Requires-Dist: gone-part>=1; extra == 'gone'
Requires-Dist: playwright>=99; extra == 'browser'
"""
FAKE_PLAYWRIGHT = """\
import json, os, sys
from pathlib import Path
folder = Path(os.environ["HOME"]) / ".cache/ms-playwright/chromium-1/chrome-linux"
folder.mkdir(parents=True)
(folder / "chrome").write_text(json.dumps([sys.argv[1:], sorted(os.environ)]))
print("downloading Chromium")
"""
WITHOUT_CHROMIUM = """\
import sys
from keryx.tools.browser import requirements
requirements._PROGRAMS = requirements._OTHERS = ()  # as if none were installed for all users
from keryx.cli.entry import main
sys.exit(main())
"""


class Environment:
    """A virtual environment that sees this Keryx, and has its own record of the optional parts."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.home.mkdir()
        self.index = folder / "index"
        self.index.mkdir()
        where = folder / "environment"
        venv.create(where, with_pip=False, symlinks=True)
        self.python = where / "bin" / "python"
        paths = {"base": str(where), "platbase": str(where)}
        self.site = Path(sysconfig.get_path("purelib", vars=paths))
        below = sysconfig.get_path("purelib")
        (self.site / "all.pth").write_text(f"import site; site.addsitedir({below!r})\n")
        record = self.site / "keryx-0.1.0.dist-info"
        record.mkdir()
        (record / "METADATA").write_text(METADATA)

    def offer(self, name: str, version: str, **modules: str) -> None:
        """Put a wheel into the index."""
        record = f"{name}-{version}.dist-info"
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        tag = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        with zipfile.ZipFile(self.index / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
            for module, text in modules.items():
                wheel.writestr(f"{name}/{module}.py", text)
            wheel.writestr(f"{record}/METADATA", head)
            wheel.writestr(f"{record}/WHEEL", tag)
            wheel.writestr(f"{record}/RECORD", "")

    @property
    def variables(self) -> dict[str, str]:
        return {
            "PATH": os.defpath,
            "HOME": str(self.home),
            "KERYX_HOME": str(self.home),
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_CACHE_DIR": str(self.home / "cache"),
            "OPENAI_API_KEY": "a secret",
        }

    def doctor(
        self, *words: str, program: tuple[str, ...] = ("-m", "keryx"), stdin: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.python, *program, "doctor", *words],
            stdin=subprocess.DEVNULL if stdin is None else stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
            env=self.variables,
            cwd=self.home,
        )

    def has(self, name: str) -> bool:
        return (self.site / name).exists()


@pytest.fixture
def here(tmp_path: Path) -> Environment:
    environment = Environment(tmp_path)
    environment.offer("tiny_part", "1.0", __init__="")
    return environment


@pytest.mark.parametrize("part", ["tiny", "all"])
def test_the_packages_of_a_part_are_installed_and_keryx_itself_is_not(
    here: Environment, part: str
) -> None:
    result = here.doctor("--install", part, "--yes")
    assert result.returncode == 0, result.stderr
    assert "pip install --no-input --disable-pip-version-check 'tiny-part>=1'" in result.stdout
    assert "Successfully installed tiny_part-1.0" in result.stdout.replace("tiny-part", "tiny_part")
    assert f"{part} is installed" in result.stdout
    assert here.has("tiny_part")
    assert (here.site / "keryx-0.1.0.dist-info" / "METADATA").read_text() == METADATA


def test_a_part_that_does_not_exist_gets_a_suggestion(here: Environment) -> None:
    result = here.doctor("--install", "brwser", "--yes")
    assert result.returncode == 2
    assert result.stderr == 'keryx doctor: unknown part "brwser"; did you mean "browser"?\n'


def test_yes_alone_is_wrong_usage(here: Environment) -> None:
    assert here.doctor("--yes").returncode == 2


def test_without_a_terminal_and_without_consent_nothing_is_installed(here: Environment) -> None:
    result = here.doctor("--install", "tiny")
    assert result.returncode == 1
    assert "tiny-part" in result.stdout
    assert "pass --yes" in result.stderr
    assert not here.has("tiny_part")


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1), ("", 1)])
def test_a_person_is_asked_and_sees_the_command_before(
    here: Environment, answer: str, code: int
) -> None:
    leader, follower = pty.openpty()
    try:
        os.write(leader, f"{answer}\n".encode())
        result = here.doctor("--install", "tiny", stdin=follower)
    finally:
        os.close(leader)
        os.close(follower)
    assert result.returncode == code, result.stderr
    assert result.stdout.index("tiny-part>=1") < result.stdout.index("Run this?")
    assert here.has("tiny_part") == (code == 0)
    if os.geteuid() == 0:
        assert "as root" in result.stdout


def test_a_command_that_fails_is_reported_with_its_output(here: Environment) -> None:
    result = here.doctor("--install", "gone", "--yes")
    assert result.returncode == 1
    assert "No matching distribution found for gone-part" in result.stderr
    assert "ended with exit code 1" in result.stderr
    assert "is installed" not in result.stdout


def test_a_python_without_pip_says_what_to_do(here: Environment) -> None:
    (here.site / "no_pip.pth").write_text("import sys; sys.modules['pip'] = None\n")
    result = here.doctor("--install", "tiny", "--yes")
    assert result.returncode == 1
    assert "-m ensurepip" in result.stderr
    assert f"uv pip install --python {here.python} 'tiny-part>=1'" in result.stderr


def test_a_folder_that_somebody_works_in_does_not_provide_pip(here: Environment) -> None:
    (here.home / "pip").mkdir()
    (here.home / "pip" / "__main__.py").write_text("print('not pip')")
    result = here.doctor("--install", "tiny", "--yes", program=("-P", "-m", "keryx"))
    assert result.returncode == 0, result.stderr
    assert "not pip" not in result.stdout


def test_without_confinement_playwright_gets_its_own_chromium(here: Environment) -> None:
    here.offer("playwright", "99.0", __init__="", __main__=FAKE_PLAYWRIGHT)
    (here.home / "config.toml").write_text('confinement = "off"\n')
    result = here.doctor("--install", "browser", "--yes", program=("-c", WITHOUT_CHROMIUM))
    assert result.returncode == 0, result.stderr
    assert "-m playwright install chromium" in result.stdout
    assert "downloading Chromium" in result.stdout
    chrome = here.home / ".cache/ms-playwright/chromium-1/chrome-linux/chrome"
    words, variables = json.loads(chrome.read_text())
    assert words == ["install", "chromium"]
    assert "PIP_FIND_LINKS" in variables
    assert "OPENAI_API_KEY" not in variables, "an installer gets no secrets"


def test_with_confinement_chromium_comes_from_the_system(here: Environment) -> None:
    result = here.doctor("--install", "browser", program=("-c", WITHOUT_CHROMIUM))
    assert result.returncode == 1, "nobody consented"
    assert "playwright install" not in result.stdout
    if os.geteuid() == 0 and Path("/usr/bin/apt-get").exists():
        assert "Chromium, for all users as root:" in result.stdout
        assert "apt-get install --yes --no-install-recommends chromium" in result.stdout
    assert "sudo" not in result.stdout


@pytest.mark.parametrize("part", ["browser", "mcp", "web", "ddgs", "all"])
def test_the_parts_of_this_keryx_are_found_in_its_own_metadata(tmp_path: Path, part: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "keryx", "doctor", "--home", str(tmp_path), "--install", part],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert result.returncode == 1
    assert "pip install" in result.stdout
    assert "keryx[" not in result.stdout
