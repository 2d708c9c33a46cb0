"""`keryx serve` and `keryx tokens`, as a person uses them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from keryx.cli import serve, tokens
from tests.server.served_host import PATIENCE, ROOT


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "keryx", *words]


def ran(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(*words), capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT
    )


def test_tokens_are_made_listed_and_revoked(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path))
    created = ran("tokens", *home, "make", "robot")
    assert (created.returncode, created.stdout[:3]) == (0, "kx_")
    again = ran("tokens", *home, "make", "robot")
    assert again.returncode == 1
    assert "already" in again.stderr
    listed = ran("tokens", *home, "list")
    assert "robot" in listed.stdout
    assert "never" in listed.stdout
    assert created.stdout.strip() not in listed.stdout
    assert ran("tokens", *home, "revoke", "robot").returncode == 0
    assert ran("tokens", *home, "revoke", "robot").returncode == 1
    assert ran("tokens", *home, "list").stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_prints_its_address_and_ends_by_a_signal(tmp_path: Path, number: int) -> None:
    words = ("serve", "--home", str(tmp_path), "--workspace", str(tmp_path), "--port", "0")
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        link = process.stdout.readline().split()[-1]
        assert link.startswith(f"{address}#token=")
        with urllib.request.urlopen(f"{address}api/health", timeout=PATIENCE) as answer:
            assert b'"ok"' in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(f"{address}api/sessions", timeout=PATIENCE)
        process.send_signal(number)
        _, said = process.communicate(timeout=PATIENCE)
        assert (process.returncode, said) == (0, "")


def test_serve_refuses_an_open_house_with_a_clear_text(tmp_path: Path) -> None:
    refused = ran("serve", "--home", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 1
    assert "a password is needed" in refused.stderr
    assert "--password-file" in refused.stderr
    (tmp_path / "short").write_text("short\n")
    short = ran(
        "serve",
        "--home",
        str(tmp_path),
        "--host",
        "0.0.0.0",
        "--password-file",
        str(tmp_path / "short"),
    )
    assert short.returncode == 1
    assert "characters" in short.stderr
    missing = ran("serve", "--home", str(tmp_path), "--password-file", str(tmp_path / "no"))
    assert missing.returncode == 1
    assert "cannot be read" in missing.stderr


def test_a_password_from_the_environment_opens_the_house_to_others(tmp_path: Path) -> None:
    words = ("serve", "--home", str(tmp_path), "--host", "0.0.0.0", "--port", "0")
    env = {**os.environ, "KERYX_PASSWORD": "correct horse"}
    with subprocess.Popen(
        command(*words), stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env
    ) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        body = json.dumps({"password": "correct horse"}).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{address}api/login", body, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.status == 204
        process.terminate()
    assert "correct horse" not in (tmp_path / "password.json").read_text()


def test_both_commands_say_what_they_are_for() -> None:
    assert serve.__doc__
    assert tokens.__doc__
