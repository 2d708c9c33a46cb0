"""A model that is not configured as it should be: said before anything is asked."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from tests.cli.commands import COMMAND, environment, keryx

pytestmark = pytest.mark.promise("mended.16")


def run(home: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, *words],
        env={**environment(home), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def configure(home: Path, text: str) -> None:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)


def test_a_key_without_a_model_s_name_asks_for_the_name(tmp_path: Path) -> None:
    result = run(tmp_path, "run", "Hi", OPENAI_API_KEY="sk-0123456789")
    assert result.returncode == 1
    assert "no model is named (configured providers: openai)" in result.stderr
    assert "--model openai:NAME" in result.stderr
    assert "set OPENAI_API_KEY" not in result.stderr


def test_a_variable_that_is_not_set_is_named_and_nobody_is_asked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        configure(
            tmp_path,
            f'model = "x:m"\n[providers.x]\nbase_url = "{address}"\napi_key_env = "NOT_THERE"\n',
        )
        result = run(tmp_path, "run", "Hi")
        assert result.returncode == 1
        assert "the variable NOT_THERE, which is not set" in result.stderr
        assert "set NOT_THERE" in result.stderr
        assert "NOT_THERE" in run(tmp_path, "doctor").stdout
        server.setblocking(False)
        with pytest.raises(BlockingIOError):
            server.accept()


def test_a_fallback_answers_for_a_model_whose_key_is_not_set(tmp_path: Path) -> None:
    configure(
        tmp_path,
        'model = "x:m"\n[models]\nfallback = ["scripted:demo"]\n'
        '[providers.x]\nbase_url = "http://127.0.0.1:9/v1"\napi_key_env = "NOT_THERE"\n',
    )
    result = run(tmp_path, "run", "Hi")
    assert result.returncode == 0, result.stderr
    assert "scripted model" in result.stdout


@pytest.mark.parametrize(
    "address", ["htp://nope", "nope", "http://", "http://[::1", "http://h:port/v1", "http://a b/"]
)
def test_what_is_no_address_is_refused_where_it_is_written(tmp_path: Path, address: str) -> None:
    written = f'[providers.x]\nbase_url = "{address}"\n'
    configure(tmp_path, f'model = "x:m"\n{written}')
    in_file = run(tmp_path, "run", "Hi")
    (tmp_path / "config.toml").unlink()
    in_variable = run(tmp_path, "run", "Hi", OPENAI_BASE_URL=address)
    keys = {"model": "x:m", "providers": {"x": {"base_url": address}}}
    (tmp_path / "keys.json").write_text(json.dumps(keys))
    in_keys = run(tmp_path, "run", "Hi")
    for result, where in (
        (in_file, "config.toml"),
        (in_variable, "OPENAI_BASE_URL"),
        (in_keys, "keys.json"),
    ):
        assert result.returncode == 1
        assert where in result.stderr
        assert "write http:// or https://" in result.stderr
        assert "again in" not in result.stderr


def test_a_session_that_is_not_there_is_named(tmp_path: Path) -> None:
    for words in (
        ("run", "--session", "nosuch", "Hi"),
        ("tools", "call", "--session", "nosuch", "x"),
    ):
        result = keryx(tmp_path, *words)
        assert (result.returncode, result.stdout) == (1, "")
        assert result.stderr == (
            "keryx: there is no session 'nosuch'; `keryx sessions list` shows those there are\n"
        )


def test_ctrl_c_while_a_person_is_asked_ends_the_command(tmp_path: Path) -> None:
    """The thread that waits for the answer holds standard input; Python would abort on that."""
    ours, theirs = pty.openpty()
    arguments = json.dumps({"path": "file", "content": "text"})
    with subprocess.Popen(
        [COMMAND, "tools", "call", "write_file", arguments, "--approve", "ask"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env=environment(tmp_path / "home"),
        cwd=tmp_path,
    ) as process:
        os.close(theirs)
        try:
            output = b""
            while b"[N] Deny:" not in output:
                output += os.read(ours, 1000)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)
            said = os.read(ours, 10_000)
        finally:
            process.kill()
            os.close(ours)
    assert process.returncode == 130, said
    assert b"Fatal" not in said
    assert b"Traceback" not in said


def test_output_that_does_not_block_is_written_to_its_end(tmp_path: Path) -> None:
    """Whoever shares a pipe with a program may have set it so; a full one is waited for."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.write(writing, b"-" * 65_536)
    with subprocess.Popen(
        [COMMAND, "tools", "list", "--json"],
        stdout=writing,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert json.loads(text.lstrip(b"-"))
