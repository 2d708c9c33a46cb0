"""`config.toml` is changed by programs and by hand at once, and its writer may be killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from keryx.config import load
from keryx.config.editing import (
    CannotEditError,
    Change,
    ChangedMeanwhileError,
    ConfigFile,
    revision_of,
)
from keryx.config.editing.secret_marks import SecretMarks

pytestmark = pytest.mark.promise("page20.11")

TEXT = """\
# My configuration.

model = "openai:gpt-5"  # the good one

[limits]
steps = 200  # enough
# tokens = 5
"""
WRITER = """
import sys
from pathlib import Path
from keryx.config.editing import Change, ConfigFile

file = ConfigFile(Path(sys.argv[1]))
number = 0
while True:
    number += 1
    file.change([Change(("limits", "steps"), number)], lambda text: None)
    print(number, flush=True)
"""


def accept(text: str) -> None:
    """Any text can be used."""
    del text


def written(home: Path, text: str = TEXT) -> ConfigFile:
    (home / "config.toml").write_text(text)
    return ConfigFile(home)


def test_a_change_by_hand_of_another_setting_is_merged(tmp_path: Path) -> None:
    file = written(tmp_path)
    by_hand = TEXT.replace("gpt-5", "gpt-6").replace("# tokens = 5", "# tokens = 5, or more")
    file.path.write_text(by_hand)
    change = Change(("limits", "steps"), 100, before=200)
    new = file.change([change], accept, revision=revision_of(TEXT))
    assert new == file.path.read_text() == by_hand.replace("200", "100")


def test_a_change_by_hand_of_the_same_setting_is_not_overwritten(tmp_path: Path) -> None:
    file = written(tmp_path)
    by_hand = TEXT.replace("200", "300")
    file.path.write_text(by_hand)
    change = Change(("limits", "steps"), 100, before=200)
    with pytest.raises(ChangedMeanwhileError) as error:
        file.change([change], accept, revision=revision_of(TEXT))
    assert error.value.paths == (("limits", "steps"),)
    assert file.path.read_text() == by_hand


def test_what_is_saved_by_hand_while_a_change_is_written_is_kept(tmp_path: Path) -> None:
    file = written(tmp_path)
    saved = iter((TEXT.replace("gpt-5", "gpt-6"), TEXT.replace("200", "300")))

    def save_by_hand(text: str) -> None:
        """A person saves the file after it was read, and before it is replaced."""
        del text
        if (by_hand := next(saved, None)) is not None:
            file.path.write_text(by_hand)

    change = Change(("limits", "steps"), 100, before=200)
    with pytest.raises(ChangedMeanwhileError):
        file.change([change], save_by_hand, revision=revision_of(TEXT))
    assert file.path.read_text() == TEXT.replace("200", "300")
    other = Change(("limits", "seconds"), 60)
    file.change([other], accept, revision=revision_of(TEXT))
    assert tomllib.loads(file.path.read_text())["limits"] == {"steps": 300, "seconds": 60}


def test_a_broken_file_is_not_overwritten(tmp_path: Path) -> None:
    broken = TEXT + "[limits\n"
    file = written(tmp_path, broken)
    with pytest.raises(CannotEditError, match="line 8"):
        file.change([Change(("model",), "openai:gpt-6")], accept)
    assert file.path.read_text() == broken


def test_a_result_that_cannot_be_used_is_not_written(tmp_path: Path) -> None:
    file = written(tmp_path)

    def refuse(text: str) -> None:
        raise ValueError(text)

    with pytest.raises(ValueError, match="gpt-6"):
        file.change([Change(("model",), "openai:gpt-6")], refuse)
    assert file.path.read_text() == TEXT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.lock", "config.toml"]


def test_a_link_stays_a_link_and_the_permissions_stay(tmp_path: Path) -> None:
    home, elsewhere = tmp_path / "home", tmp_path / "dotfiles"
    home.mkdir()
    elsewhere.mkdir()
    (elsewhere / "keryx.toml").write_text(TEXT)
    (elsewhere / "keryx.toml").chmod(0o640)
    (home / "config.toml").symlink_to(elsewhere / "keryx.toml")
    ConfigFile(home).change([Change(("limits", "steps"), 100)], accept)
    assert (home / "config.toml").is_symlink()
    assert (elsewhere / "keryx.toml").read_text() == TEXT.replace("200", "100")
    assert stat.S_IMODE((elsewhere / "keryx.toml").stat().st_mode) == 0o640


def test_line_ends_of_other_systems_stay(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path)
    file.path.write_bytes(TEXT.replace("\n", "\r\n").encode())
    file.change([Change(("limits", "steps"), 100)], accept)
    assert file.path.read_bytes() == TEXT.replace("\n", "\r\n").replace("200", "100").encode()
    # Lines that are new end as the others do.
    changes = [Change(("limits", "calls"), 7), Change(("usage", "names"), ["a", "b"])]
    file.change([*changes, Change(("model",))], accept)
    content = file.path.read_bytes().decode()
    assert content.count("\n") == content.count("\r\n")
    assert tomllib.loads(content)["limits"] == {"steps": 100, "calls": 7}


def test_a_byte_order_mark_means_nothing_and_stays(tmp_path: Path) -> None:
    file = ConfigFile(tmp_path)
    file.path.write_bytes(b"\xef\xbb\xbf" + TEXT.encode())
    assert load(tmp_path, {}).default.model == "openai:gpt-5"
    file.change([Change(("limits", "steps"), 100)], accept, revision=revision_of(TEXT))
    new = TEXT.replace("200", "100")
    assert file.path.read_bytes() == b"\xef\xbb\xbf" + new.encode()
    assert load(tmp_path, {}).limits.steps == 100


@pytest.mark.parametrize("count", [1, 2, 5, 9])
def test_a_kill_leaves_the_old_file_or_the_new_one(tmp_path: Path, count: int) -> None:
    file = written(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, env=os.environ
    ) as writer:
        assert writer.stdout is not None
        acknowledged = [int(writer.stdout.readline()) for _ in range(count)][-1]
        writer.send_signal(signal.SIGKILL)
        later = writer.stdout.read().split()
    text = file.path.read_text()
    steps = tomllib.loads(text)["limits"]["steps"]
    assert text == TEXT.replace("200", str(steps))
    # What was acknowledged is there; the change under way may be there too.
    last = int(later[-1]) if later else acknowledged
    assert last <= steps <= last + 1


@pytest.mark.promise("page20.15")
def test_secrets_are_shown_as_marks_and_written_back() -> None:
    document = {
        "providers": {"openai": {"api_key": "sk-1", "api_key_env": "OPENAI_API_KEY"}},
        "personalities": {"secret": "Whisper."},
        "mcp": {
            "servers": {
                "one": {
                    "command": "run",
                    "args": ["--verbose", "--api-key", "sk-2", "--token=sk-3"],
                    "env": {"A": "sk-4", "B": "${B}"},
                },
                "two": {
                    "url": "https://me:sk-5@example.com/?api_key=sk-6",
                    "headers": {"Authorization": "Bearer sk-7"},
                },
            }
        },
    }
    marks = SecretMarks()
    shown = marks.hidden(document)
    assert "sk-" not in str(shown)
    assert shown["personalities"] == document["personalities"]
    assert shown["mcp"]["servers"]["one"]["args"][0] == "--verbose"
    assert shown["mcp"]["servers"]["one"]["env"]["B"] == "${B}"
    assert marks.revealed(shown, document) == document
    with pytest.raises(CannotEditError, match="enter it again"):
        SecretMarks().revealed(shown, document)
