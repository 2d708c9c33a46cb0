"""Each person of the gateway has memories of their own: the names that keep them apart."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keryx import Keryx
from keryx.app.host.socket_protocol import NewSession, checked
from keryx.config import load
from keryx.config.schema import ConfigurationError
from keryx.errors import DeveloperMustActError
from keryx.gateway.people import session_person
from keryx.memory.providers.honcho.names import MAX_LENGTH, workspace_name
from keryx.memory.providers.notes import names
from keryx.ports.memory import memory_profile, profile_and_person
from keryx.ports.platform import Address, Person

pytestmark = pytest.mark.promise("chat.7")

IDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=200)
PROFILES = st.text(min_size=1, max_size=30).filter(lambda n: profile_and_person(n)[1] is None)
WHO = st.tuples(st.sampled_from(["private", "owner", "group", "in group"]), IDS)
HONCHO = re.compile(r"[A-Za-z0-9_-]+")


def person_of(who: tuple[str, str]) -> str | None:
    kind, name = who
    address = Address(name if kind == "group" else "c", None, kind in ("private", "owner"))
    owners = [name] if kind == "owner" else []
    by_person = kind != "group"
    return session_person("webhook", owners, address, Person(name), by_person=by_person)


@given(PROFILES, WHO, PROFILES, WHO)
@example("default", ("private", "a/b"), "default/webhook:a", ("private", "b"))
@example("default", ("private", "%2F"), "default", ("private", "/"))
@example("default", ("private", "chat:a"), "default", ("group", "a"))
@example("default", ("private", "a"), "default", ("private", "A"))
def test_different_people_share_no_name(
    profile: str, who: tuple[str, str], other_profile: str, other_who: tuple[str, str]
) -> None:
    person, other = person_of(who), person_of(other_who)
    own, of_other = memory_profile(profile, person), memory_profile(other_profile, other)
    assert profile_and_person(own) == (profile, person)
    if person is not None:
        assert checked(NewSession(session_id="s", person=person)).person == person
    is_same = (profile, person) == (other_profile, other)
    assert (own == of_other) == is_same
    assert (workspace_name("keryx", own) == workspace_name("keryx", of_other)) == is_same
    assert HONCHO.fullmatch(workspace_name("keryx", own))
    assert len(workspace_name("keryx", own)) <= MAX_LENGTH
    if person is not None and other is not None:
        assert (names.folder_of(own) == names.folder_of(of_other)) == is_same
        assert len(names.folder_of(own).encode()) < 255
        assert "/" not in names.folder_of(own)


def test_a_group_is_nobody_s_private_chat_and_the_owner_s_group_is_not_their_home() -> None:
    group, private, person = Address("-5", None, False), Address("5"), Person("5")
    owners = ["5"]

    def who(address: Address, *, by_person: bool) -> str | None:
        return session_person("telegram", owners, address, person, by_person=by_person)

    assert who(private, by_person=False) is None
    assert who(private, by_person=True) is None
    assert who(group, by_person=False) == "telegram-chat:-5"
    assert who(group, by_person=True) == "telegram:5"


@pytest.mark.parametrize("person", ["", "ann", "telegram:", ":7", "a:b/c", "a:b\n", "A:b", 7])
def test_a_session_for_somebody_who_is_not_written_so_is_refused(person: str) -> None:
    with pytest.raises(DeveloperMustActError):
        checked(NewSession(session_id="s", person=person))


def test_a_profile_is_not_named_like_a_person_s_memories(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[profiles."default/telegram:7"]\n')
    with pytest.raises(ConfigurationError, match="give it a name without a slash"):
        load(tmp_path, {})
    file.write_text('[profiles."work/home"]\n')
    assert "work/home" in load(tmp_path, {}).profiles


async def test_the_owner_adds_and_lists_what_a_person_is_to_be_told(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('[memory]\nproviders = ["notes"]\n')
    async with Keryx(home=tmp_path) as app:
        of_ann = memory_profile("default", "telegram:7")
        await app.memory.add("Ann drinks green tea.", profile=of_ann)
        await app.memory.add("The owner drinks coffee.")
        await app.memory.retry()
        page = await app.memory.list(profile=of_ann)
        assert [memory.text for memory in page.memories] == ["Ann drinks green tea."]
        assert {memory.profile for memory in await app.memory.export()} == {"default", of_ann}
