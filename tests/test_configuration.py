"""What the guide says of `config.toml` is what is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keryx import config
from keryx.config import ConfigurationError, secrets_of

GUIDE = Path(__file__).parent.parent / "docs" / "configuration.md"


def example() -> str:
    found = re.search(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_of_the_guide_is_read_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(example())
    found = config.load(tmp_path, {"OPENAI_API_KEY": "sk-0123456789"})
    assert (found.default.model, found.confinement) == ("openai:gpt-5", "on")
    assert found.default.providers["openai"].api_key == "sk-0123456789"
    assert found.limits.seconds == 3600
    assert found.approvals.deny == ("terminal:git push*",)
    assert (
        found.default.personalities["pirate"].text == "You are a pirate.\nTone: salty\nStyle: short"
    )
    assert found.default.personalities["terse"].text == "Answer in one sentence."


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("confinement = 'some'", "confinement"),
        ("[approvals]\nmode = 'maybe'", "mode"),
        ("[limit]\nsteps = 1", "limit"),
        ("model = [", "config.toml"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "config.toml").write_text(written)
    with pytest.raises(ConfigurationError, match=said):
        config.load(tmp_path, {})


def test_it_is_read_again_only_when_it_has_changed(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("model = 'a:b'\n")
    first = config.load(tmp_path, {})
    assert config.reload(first) is first
    file.write_text("model = 'a:longer'\n")
    assert config.reload(first).default.model == "a:longer"


@pytest.mark.promise("004.6", "004.11")
def test_a_profile_has_its_own_and_the_rest_from_all(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(example())
    found = config.load(tmp_path, {"WORK_KEY": "work-0123456789"})
    work = found.profile("work")
    assert work.model == "openai:gpt-5-mini"
    assert work.providers["openai"].api_key == "work-0123456789"
    assert sorted(work.personalities) == ["formal", "pirate", "terse"]
    assert work.toolsets["web"] == ("files",)
    assert found.default.providers["openai"].api_key is None
    assert "formal" not in found.default.personalities
    assert found.profile("unheard of") is found.default
    assert "work-0123456789" in secrets_of(found).values()


def test_what_sounds_like_a_secret_is_one(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[providers.x]\nbase_url = 'http://h'\napi_key = 'in-the-file-0123'\n"
    )
    variables = {
        "GITHUB_TOKEN": "tok-0123456789",
        "AWS_SECRET_ACCESS_KEY": "aws-0123456789",
        "DB_PASSWORD": "pass-0123456789",
        "PATH": "/usr/bin",
        "KEYBOARD": "qwerty-layout",
    }
    found = secrets_of(config.load(tmp_path, variables))
    assert set(found) == {
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "the key of x",
    }
