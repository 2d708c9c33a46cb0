"""What is hidden stays so while others change it; where a cover can slip off, a report says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from keryx.cli.doctor import advice_on
from keryx.sandbox import Policy
from keryx.sandbox.policy import owners_only
from tests.sandbox.den import Den

pytestmark = pytest.mark.promise("walls.3")

HIDDEN = ("shadow", "ssl/private", "sub/deep/token", "later")
PLAIN = ("passwd", "ssl/certificate", "sub/other", "sub/deep/other")


@pytest.fixture
def system(closed_den: Den) -> Path:
    """A folder of the system that can be read, with secrets between other files."""
    system = closed_den.readable
    for name in (*PLAIN, "shadow", "ssl/private/key", "sub/deep/token"):
        (system / name).parent.mkdir(parents=True, exist_ok=True)
        (system / name).write_text("plain " if name in PLAIN else "SECRET ")
    (system / "link").symlink_to("passwd")
    closed_den.policy = Policy.build(
        closed_den.workspace,
        home=closed_den.outside,
        readable=[system],
        hidden=[system / name for name in HIDDEN],
        tmp=closed_den.tmp,
    )
    return system


def replace(path: Path) -> None:
    """As `usermod` and others do it: the new one is written beside it and takes its name."""
    new = path.with_name(f"{path.name}.new")
    new.write_text("SECRET ")
    new.replace(path)


@pytest.mark.parametrize("without", [(), ("landlock",), ("userns",)], ids=str)
async def test_a_hidden_file_that_is_replaced_stays_hidden_from_who_runs_already(
    system: Path, den: Den, without: tuple[str, ...]
) -> None:
    den.change(without=without)
    everything = f"cd {system}; cat {' '.join(PLAIN)} link; find . -type f | xargs cat"
    before = await den.sh(everything)
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
    after = await den.sh(f"cd {system}; cat {paths}; {everything}")
    assert after.count("plain") == before.count("plain")
    assert "SECRET" not in after


@pytest.fixture
def home(closed_den: Den) -> Path:
    """The home as workspace, with a secret in it."""
    home = closed_den.workspace
    (home / ".netrc").write_text("SECRET")
    closed_den.policy = Policy.build(home, home=home, tmp=closed_den.tmp)
    return home


async def test_where_new_files_must_appear_a_cover_can_slip_and_the_report_says_so(
    home: Path, den: Den
) -> None:
    found = await den.confinement()
    slips = f"can read hidden files of {str(home)!r} once another program has replaced or made them"
    assert (found.level, found.gaps) == ("partial", (slips,))
    assert advice_on(found.gaps)
    assert await den.sh("cat .netrc .pgpass") == "cat: .pgpass: No such file or directory"
    replace(home / ".netrc")
    assert await den.sh("cat .netrc") == "SECRET"


@pytest.fixture
def only_folders(closed_den: Den) -> None:
    hidden = closed_den.workspace / "keryx"
    hidden.mkdir()
    closed_den.policy = Policy.build(
        closed_den.workspace, home=closed_den.outside, hidden=[hidden], tmp=closed_den.tmp
    )


@pytest.mark.usefixtures("only_folders")
async def test_a_workspace_that_holds_only_hidden_folders_is_a_full_wall(den: Den) -> None:
    assert (await den.confinement()).level == "full"


@pytest.fixture
def owned(closed_den: Den, request: pytest.FixtureRequest) -> Path:
    """Programs of another maker, who left a key that only its owner may read."""
    program = closed_den.readable / "maker"
    (program / "private").mkdir(parents=True)
    for name in ("program", "key", "private/token"):
        (program / name).write_text("plain" if name == "program" else "SECRET")
    (program / "key").chmod(0o600)
    (program / "private").chmod(0o700)
    closed_den.policy = Policy.build(
        closed_den.workspace,
        home=closed_den.outside,
        readable=[closed_den.readable],
        tmp=closed_den.tmp,
        owned=owners_only([str(closed_den.readable)], request.param),
    )
    return closed_den.readable


@pytest.mark.promise("walls.5")
@pytest.mark.parametrize("owned", [100], indirect=True)
async def test_what_only_its_owner_may_read_of_the_system_is_hidden(owned: Path, den: Den) -> None:
    assert (await den.confinement()).level == "full"
    said = await den.sh(f"cd {owned}/maker; cat program key private/token")
    assert "plain" in said
    assert "SECRET" not in said


@pytest.mark.promise("walls.5")
@pytest.mark.parametrize("owned", [1], indirect=True)
async def test_a_folder_that_is_too_large_to_be_looked_through_is_reported(
    owned: Path, den: Den
) -> None:
    found = await den.confinement()
    why = f"can read files of {str(owned)!r} that only their owner should"
    assert (found.level, found.gaps) == ("partial", (f"{why}: there are too many to look at",))
    assert advice_on(found.gaps)
