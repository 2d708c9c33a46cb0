"""Every command in bad surroundings: no traceback, no abort, a documented exit code, a reason.

The commands come from the parsers, so a new one is tested by itself; pytest counts the cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from keryx.cli.main import EPILOG
from tests.cli.command_runs import DOCUMENTED, Around, Ended, World
from tests.cli.generated import LEAVES, Leaf

pytestmark = pytest.mark.promise("mended.16")

NO_UTF8 = b"caf\xe9"
NOBODY = str(Path(__file__).with_name("nobody"))
DONE, FAILED, USAGE, BROKEN_PIPE = 0, 1, 2, 141
PRINTS_NOTHING = {
    *(f"sessions {verb}" for verb in ("delete", "undo", "diff", "revert", "tag")),
    *("sessions links", "sessions unshare"),  # the session has no links
    *("tokens revoke", "approvals remove", "config set", "config unset", "users list"),
    "chat",  # nobody says anything here
}
NEEDS_NO_HOME = {"demo"}
SUMS_UP = {"sessions compact"}
"""It always fails here: the scripted model sums up nothing."""
MEASURED = "Something did not work as promised"
"""`demo` says so if its figures are bad, as they are on a machine that has much to do."""
ODD_VARIABLES = {"LANG": NO_UTF8, "A_TOKEN": b"0123456789" + NO_UTF8}


def all_of_them(leaf: Leaf) -> bool:
    return bool(leaf)


@dataclass(frozen=True)
class Bad:
    """Surroundings, and how every command ends in them."""

    around: Around
    codes: tuple[int, ...]
    says: str = ""
    """What a command says that fails in them."""
    otherwise: frozenset[str] | set[str] = frozenset()
    """Those that do not mind these surroundings."""
    which: Callable[[Leaf], bool] = all_of_them


SURROUNDINGS = {
    "stdin is closed": Bad(Around("<&-"), (DONE,)),
    "stdout is closed": Bad(Around(">&-"), (FAILED,), "standard output is closed"),
    "stderr is closed": Bad(Around("2>&-"), (DONE,)),
    "all are closed": Bad(Around("<&- >&- 2>&-"), (FAILED,)),
    "stdout is full": Bad(
        Around(">/dev/full"), (FAILED,), "standard output cannot be written", PRINTS_NOTHING
    ),
    "nobody reads stdout": Bad(Around(broken="stdout"), (BROKEN_PIPE,), "", PRINTS_NOTHING),
    "nobody reads stderr": Bad(Around(broken="stderr"), (DONE,)),
    "ASCII, no HOME and odd variables": Bad(
        Around(variables={"PYTHONIOENCODING": "ascii", "HOME": None, **ODD_VARIABLES}), (DONE,)
    ),
    "ASCII file names": Bad(
        Around(
            variables={
                "PYTHONIOENCODING": None,
                "LC_ALL": "C",
                "PYTHONUTF8": "0",
                "PYTHONCOERCECLOCALE": "0",
            }
        ),
        (DONE, USAGE),
        "not UTF-8",
    ),
    "no home at all": Bad(
        Around(
            variables={
                "HOME": None,
                "KERYX_HOME": None,
                "XDG_DATA_HOME": None,
                "PYTHONPATH": NOBODY,
            }
        ),
        (FAILED,),
        "choose a folder with KERYX_HOME or --home",
        NEEDS_NO_HOME,
    ),
    "the home is a file": Bad(
        Around(variables={"KERYX_HOME": "/etc/hostname"}), (FAILED,), "KERYX_HOME", NEEDS_NO_HOME
    ),
    "the home cannot be made": Bad(
        Around(variables={"KERYX_HOME": "/proc/nowhere"}), (DONE, FAILED), "KERYX_HOME"
    ),
    "the home is not UTF-8": Bad(
        Around(variables={"KERYX_HOME": b"/tmp/" + NO_UTF8}), (FAILED,), "KERYX_HOME"
    ),
    "the configuration is a folder": Bad(
        Around(before='mkdir "$KERYX_HOME/config.toml";'), (FAILED,), "config.toml", NEEDS_NO_HOME
    ),
    "the provider has no address": Bad(
        Around(variables={"OPENAI_BASE_URL": "htp://nope"}),
        (FAILED,),
        "'htp://nope' is not the address of a server: write http:// or https://",
    ),
    "the working directory is gone": Bad(
        Around(before='rmdir "$PWD";'), (DONE, USAGE), "name another folder"
    ),
    "the working directory is not UTF-8": Bad(
        Around(before='odd=$(printf \'caf\\351\'); mkdir "$odd"; cd "$odd";'),
        (DONE, USAGE),
        "is not UTF-8; rename it, or name another",
    ),
    "an argument is not UTF-8": Bad(Around(more=NO_UTF8), (USAGE,), "is not UTF-8"),
    "stdin is not UTF-8": Bad(
        Around(stdin=NO_UTF8),
        (FAILED,),
        "standard input is not utf-8",
        which=lambda leaf: leaf.reads_stdin,
    ),
    "stdin cannot be read": Bad(
        Around("0>/dev/null", stdin=b"-"),
        (FAILED,),
        "standard input cannot be read",
        which=lambda leaf: leaf.reads_stdin,
    ),
}
CASES = [
    (name, leaf.name)
    for name, bad in SURROUNDINGS.items()
    for leaf in LEAVES.values()
    if bad.which(leaf)
]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def ended(world: World) -> Callable[[str, str], Ended]:
    """How a command ended in one of the surroundings; all commands are run there at once."""
    batches: dict[str, dict[str, Ended]] = {}

    def find(name: str, leaf: str) -> Ended:
        if name not in batches:
            bad = SURROUNDINGS[name]
            batches[name] = world.all(bad.around, filter(bad.which, LEAVES.values()))
        return batches[name][leaf]

    return find


@pytest.mark.parametrize(("name", "leaf"), CASES)
def test_it_ends_with_a_documented_code_and_a_reason(
    name: str, leaf: str, ended: Callable[[str, str], Ended]
) -> None:
    bad, end = SURROUNDINGS[name], ended(name, leaf)
    end.check()
    does_not_mind = leaf in bad.otherwise
    # The home of these tests has no memory, chat platform or named user; other tests have such
    # homes. There is no network here, from which a model could be pulled.
    off = ("memory ", "gateway", "models pull", "models list", "users ")
    is_off = leaf.startswith(off) and end.code == FAILED
    fails_anyway = (leaf in SUMS_UP and end.code == FAILED) or MEASURED in end.err or is_off
    if not does_not_mind and not fails_anyway:
        assert end.code in bad.codes, str(end)
    is_heard = "2>" not in bad.around.redirect and bad.around.broken != "stderr"
    if end.code in (FAILED, USAGE) and is_heard:
        # What is broken is said on standard error; `doctor` finds it, and says so in its list.
        said = end.err if leaf != "doctor" else end.out + end.err
        assert "keryx" in said.lower() or leaf == "doctor", str(end)
        assert fails_anyway or bad.says in " ".join(said.split()), str(end)


def test_every_exit_code_is_explained() -> None:
    for code in (*DOCUMENTED, 70):
        assert f"\n  {code} " in EPILOG
