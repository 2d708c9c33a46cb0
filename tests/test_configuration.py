"""What the guide says of `config.toml` is what is read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from msgspec import inspect

from keryx import config
from keryx.app.models import Models
from keryx.config import ConfigurationError, Provider, keep_key, reading, secrets_of

GUIDE = Path(__file__).parent.parent / "docs" / "configuration.md"


def example() -> str:
    match = re.search(r"```toml\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


def test_the_example_of_the_guide_is_read_as_it_says(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(example())
    settings = config.load(tmp_path, {"OPENAI_API_KEY": "sk-0123456789"})
    assert (settings.default.model, settings.confinement) == ("openai:gpt-5", "on")
    assert settings.default.providers["openai"].api_key == "sk-0123456789"
    assert settings.limits.seconds == 3600
    assert settings.approvals.deny == ("terminal:git push*",)
    assert (
        settings.default.personalities["pirate"].text
        == "You are a pirate.\nTone: salty\nStyle: short"
    )
    assert settings.default.personalities["terse"].text == "Answer in one sentence."


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("confinement = 'some'", "confinement"),
        ("[approvals]\nmode = 'maybe'", "mode"),
        ("modl = 'a:b'", 'config.toml: unknown setting "modl"; did you mean "model"\\?$'),
        ("[limit]\nsteps = 1", 'unknown setting "limit"; did you mean "limits"\\?$'),
        ("[limits]\nstep = 1", 'unknown setting "step" in \\[limits\\]; did you mean "steps"\\?$'),
        (
            "[providers.x]\nbase_ur = 'http://h'",
            'unknown setting "base_ur" in \\[providers.NAME\\]; did you mean "base_url"\\?$',
        ),
        (
            "[profiles.work.models]\nfalback = []",
            'unknown setting "falback" in \\[profiles.NAME.models\\]; did you mean "fallback"\\?$',
        ),
        (
            "[personalities.pirate]\nzzz = ''",
            'unknown setting "zzz".*; there are system_prompt, prompt, tone, style$',
        ),
        ("model = [", "config.toml is not valid TOML"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, written: str, said: str) -> None:
    (tmp_path / "config.toml").write_text(written)
    with pytest.raises(ConfigurationError, match=said):
        config.load(tmp_path, {})


@pytest.mark.promise("words.7")
def test_the_sources_take_precedence_in_the_order_that_the_guide_says(tmp_path: Path) -> None:
    variables = {"OPENAI_BASE_URL": "http://variable", "OPENAI_API_KEY": "sk-variable-0123"}
    chosen = Provider("http://page", "sk-page-0123")
    keep_key(tmp_path, "openai", chosen, "page-model")
    page_only = config.load(tmp_path, {})
    assert page_only.default.providers["openai"] == chosen
    assert page_only.default.model == "openai:page-model"

    with_variables = config.load(tmp_path, variables)
    assert with_variables.default.providers["openai"].base_url == "http://variable"

    (tmp_path / "config.toml").write_text(
        "model = 'openai:file'\n"
        "[providers.openai]\nbase_url = 'http://file'\n"
        "[profiles.work]\nmodel = 'openai:profile'\n"
    )
    with_file = config.load(tmp_path, variables)
    assert with_file.default.providers["openai"].base_url == "http://file"
    assert with_file.default.model == "openai:file"
    assert with_file.profile("work").model == "openai:profile"

    with_model = config.load(tmp_path, {**variables, "KERYX_MODEL": "openai:variable"})
    assert with_model.default.model == "openai:variable"
    assert with_model.profile("work").model == "openai:variable"
    assert Models(with_model, "openai:flag").default_of("work") == "openai:flag"


@pytest.mark.parametrize(
    ("text", "is_written"),
    [
        ("", False),
        ("model = 'a:b'", True),
        ("[profiles.default]\nmodel = 'a:b'", True),
        ("[profiles.work]\nmodel = 'a:b'", False),
    ],
)
def test_a_default_model_in_the_file_is_not_changed_from_the_page(
    tmp_path: Path, text: str, is_written: bool
) -> None:
    (tmp_path / "config.toml").write_text(text)
    assert config.load(tmp_path, {}).is_model_written is is_written


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
    settings = config.load(tmp_path, {"WORK_KEY": "work-0123456789"})
    work = settings.profile("work")
    assert work.model == "openai:gpt-5-mini"
    assert work.providers["openai"].api_key == "work-0123456789"
    assert sorted(work.personalities) == ["formal", "pirate", "terse"]
    assert work.toolsets["web"] == ("files",)
    assert settings.default.providers["openai"].api_key is None
    assert "formal" not in settings.default.personalities
    assert settings.profile("unheard of") is settings.default
    assert "work-0123456789" in secrets_of(settings).values()


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
    secrets = secrets_of(config.load(tmp_path, variables))
    assert set(secrets) == {
        "GITHUB_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "DB_PASSWORD",
        "the key of x",
    }


def numbers_in(kind: Any, path: str = "config") -> dict[str, Any]:
    """Return every number that a document of this type may have, by where it stands."""
    match kind:
        case inspect.StructType():
            fields = ((f"{path}.{field.encode_name}", field.type) for field in kind.fields)
        case inspect.UnionType():
            fields = ((path, each) for each in kind.types)
        case inspect.DictType():
            fields = ((f"{path}.*", kind.value_type),)
        case inspect.VarTupleType():
            fields = ((f"{path}.*", kind.item_type),)
        case inspect.Metadata():
            fields = ((path, kind.type),)
        case inspect.IntType() | inspect.FloatType():
            return {path: kind}
        case _:
            return {}
    return {
        place: number for where, part in fields for place, number in numbers_in(part, where).items()
    }


def test_every_number_of_the_file_has_a_least_value() -> None:
    """Else a wrong sign is saved, and every turn after that fails."""
    numbers = numbers_in(inspect.type_info(reading.FileConfig))
    assert {"config.limits.steps", "config.memory.wait", "config.approvals.expires"} <= set(numbers)
    unbound = [place for place, kind in numbers.items() if kind.ge is None and kind.gt is None]
    assert unbound == ["config.gateway.telegram.allow.*"]  # ids: those of groups are negative


@pytest.mark.parametrize("number", ["-5", "0", "-0.5", "nan"])
@pytest.mark.parametrize("name", ["limits.steps", "limits.seconds", "approvals.expires"])
def test_a_number_that_would_end_every_turn_is_refused(
    tmp_path: Path, name: str, number: str
) -> None:
    table, key = name.split(".")
    (tmp_path / "config.toml").write_text(f"[{table}]\n{key} = {number}\n")
    with pytest.raises(ConfigurationError, match=key):
        config.load(tmp_path, {})
