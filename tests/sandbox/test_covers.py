"""What is hidden stays so while others change it; where a cover can slip off, a report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.cli.doctor import advice_on
from keryx.sandbox import Policy
from keryx.sandbox.policy import owners_only
from tests.sandbox.confined_workspace import ConfinedWorkspace

pytestmark = pytest.mark.promise("walls.3")

HIDDEN = ("shadow", "ssl/private", "sub/deep/token", "later")
PLAIN = ("passwd", "ssl/certificate", "sub/other", "sub/deep/other")


@pytest.fixture
def system(unopened_confined: ConfinedWorkspace) -> Path:
    """A folder of the system that can be read, with secrets between other files."""
    system = unopened_confined.readable
    for name in (*PLAIN, "shadow", "ssl/private/key", "sub/deep/token"):
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text("plain " if name in PLAIN else "SECRET ")
    (system / "link").symlink_to("passwd")
    unopened_confined.policy = Policy.build(
        unopened_confined.workspace,
        home=unopened_confined.outside,
        readable=[system],
        hidden=[system / name for name in HIDDEN],
        tmp=unopened_confined.tmp,
    )
    return system


def replace(path: Path) -> None:
    """As `usermod` and others do it: the new one is written beside it and takes its name."""
    new = path.with_name(f"{path.name}.new")
    new.write_text("SECRET ")
    new.replace(path)


@pytest.mark.parametrize("without", [(), ("landlock",), ("userns",)], ids=str)
async def test_a_hidden_file_that_is_replaced_stays_hidden_from_who_runs_already(
    system: Path, confined: ConfinedWorkspace, without: tuple[str, ...]
) -> None:
    confined.change(without=without)
    everything = f"cd {system}; cat {' '.join(PLAIN)} link; find . -type f | xargs cat"
    before = await confined.sh(everything)
    assert before.count("plain") == 2 * len(PLAIN) + 1
    assert "SECRET" not in before
    replace(system / "shadow")
    replace(system / "later")
    replace(system / "sub/deep/token")
    (system / "ssl/private").rename(system / "ssl/before")
    (system / "ssl/private").mkdir()
    replace(system / "ssl/private/key")
    # The keeper is the same, and so are its walls.
    paths = "shadow later sub/deep/token ssl/private/key ssl/before/key"
    after = await confined.sh(f"cd {system}; cat {paths}; {everything}")
    assert after.count("plain") == before.count("plain")
    assert "SECRET" not in after


@pytest.fixture
def home(unopened_confined: ConfinedWorkspace) -> Path:
    """The home as workspace, with a secret in it."""
    home = unopened_confined.workspace
    (home / ".netrc").write_text("SECRET")
    unopened_confined.policy = Policy.build(home, home=home, tmp=unopened_confined.tmp)
    return home


async def test_where_new_files_must_appear_a_cover_can_slip_and_the_report_says_so(
    home: Path, confined: ConfinedWorkspace
) -> None:
    confinement = await confined.confinement()
    slips = f"can read hidden files of {str(home)!r} once another program has replaced or made them"
    assert (confinement.level, confinement.gaps) == ("partial", (slips,))
    assert advice_on(confinement.gaps)
    assert await confined.sh("cat .netrc .pgpass") == "cat: .pgpass: No such file or directory"
    replace(home / ".netrc")
    assert await confined.sh("cat .netrc") == "SECRET"


@pytest.fixture
def only_folders(unopened_confined: ConfinedWorkspace) -> None:
    hidden = unopened_confined.workspace / "keryx"
    hidden.mkdir()
    unopened_confined.policy = Policy.build(
        unopened_confined.workspace,
        home=unopened_confined.outside,
        hidden=[hidden],
        tmp=unopened_confined.tmp,
    )


@pytest.mark.usefixtures("only_folders")
async def test_a_workspace_that_holds_only_hidden_folders_is_a_full_wall(
    confined: ConfinedWorkspace,
) -> None:
    assert (await confined.confinement()).level == "full"


@pytest.fixture
def owned(unopened_confined: ConfinedWorkspace, request: pytest.FixtureRequest) -> Path:
    """A folder of installed programs, with a key that only its owner may read."""
    program = unopened_confined.readable / "maker"
    (program / "private").mkdir(parents=True)
    for name in ("program", "key", "private/token"):
        (program / name).write_text("plain" if name == "program" else "SECRET")
    (program / "key").chmod(0o600)
    (program / "private").chmod(0o700)
    unopened_confined.policy = Policy.build(
        unopened_confined.workspace,
        home=unopened_confined.outside,
        readable=[unopened_confined.readable],
        tmp=unopened_confined.tmp,
        owned=owners_only([str(unopened_confined.readable)], request.param),
    )
    return unopened_confined.readable


@pytest.mark.promise("walls.5")
@pytest.mark.parametrize("owned", [100], indirect=True)
async def test_what_only_its_owner_may_read_of_the_system_is_hidden(
    owned: Path, confined: ConfinedWorkspace
) -> None:
    assert (await confined.confinement()).level == "full"
    output = await confined.sh(f"cd {owned}/maker; cat program key private/token")
    assert "plain" in output
    assert "SECRET" not in output


@pytest.mark.promise("walls.5")
@pytest.mark.parametrize("owned", [1], indirect=True)
async def test_a_folder_that_is_too_large_to_be_looked_through_is_reported(
    owned: Path, confined: ConfinedWorkspace
) -> None:
    confinement = await confined.confinement()
    why = f"can read files of {str(owned)!r} that only their owner should"
    assert (confinement.level, confinement.gaps) == (
        "partial",
        (f"{why}: there are too many to look at",),
    )
    assert advice_on(confinement.gaps)
