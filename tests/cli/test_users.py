"""`keryx users`, as the owner of a server uses it."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.cli.commands import keryx

pytestmark = pytest.mark.promise("page20.40")


@pytest.fixture
def password(tmp_path: Path) -> str:
    file = tmp_path / "password"
    file.write_text("correct horse\n")
    return str(file)


def test_users_are_added_limited_disabled_and_removed(tmp_path: Path, password: str) -> None:
    home = tmp_path / "home"
    added = keryx(home, "users", "add", "anna", "--password-file", password)
    folder = tmp_path / "home-users" / "anna"
    assert (added.returncode, added.stdout) == (0, f"anna works in {folder}\n")
    record = home / "users" / "anna" / "user.json"
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert "correct horse" not in record.read_text()
    limited = keryx(home, "users", "limit", "anna", "--cost-per-day", "2.5")
    assert "at most $2.5 a day" in limited.stdout
    keryx(home, "users", "disable", "anna")
    assert "disabled" in keryx(home, "users", "list").stdout
    (folder / "letter.txt").write_text("hers")
    assert keryx(home, "users", "remove", "anna").returncode == 0
    assert keryx(home, "users", "list").stdout == ""
    assert [path.name for path in (home / "users").iterdir()] == []
    assert (folder / "letter.txt").read_text() == "hers"


def test_wrong_words_say_what_to_do_and_change_nothing(tmp_path: Path, password: str) -> None:
    home = tmp_path / "home"
    keryx(home, "users", "add", "anna", "--password-file", password)
    short = tmp_path / "short"
    short.write_text("abc")
    for words, reason in (
        (("add", "anna", "--password-file", password), "there is a user 'anna' already"),
        (("add", "../up", "--password-file", password), "choose another name"),
        (("add", "ben", "--password-file", str(short)), "8 to 1000 characters"),
        (("add", "ben", "--password-file", str(tmp_path / "no")), "name another"),
        (("add", "ben"), "give it with --password-file"),
        (("add", "ben", "--folder", str(home), "--password-file", password), "overlap"),
        (("add", "ben", "--folder", str(tmp_path), "--password-file", password), "overlap"),
        (("limit", "ben"), "there is no user 'ben'"),
        (("remove", "ben"), "there is no user 'ben'"),
    ):
        result = keryx(home, "users", *words)
        assert result.returncode == 1, result
        assert reason in result.stderr, result.stderr
    assert len(keryx(home, "users", "list").stdout.splitlines()) == 1
    token = keryx(home, "tokens", "make", "editor", "--user", "ben")
    assert (token.returncode, token.stdout) == (1, "")


def test_a_session_in_the_home_of_a_user_has_the_owner_s_settings(
    tmp_path: Path, password: str
) -> None:
    home = tmp_path / "home"
    keryx(home, "users", "add", "anna", "--password-file", password)
    (home / "config.toml").write_text('model = "scripted:demo"\n')
    ran = keryx(home / "users" / "anna", "run", "Hello")
    assert ran.returncode == 0, ran.stderr
    assert "Hello" in keryx(home / "users" / "anna", "sessions", "list").stdout
    assert "Hello" not in keryx(home, "sessions", "list").stdout
