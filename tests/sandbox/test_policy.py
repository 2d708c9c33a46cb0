"""What a policy grants and hides: in a private root, and with Landlock alone."""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from pathlib import Path

import pytest

from keryx.errors import SpawnError
from keryx.sandbox import Policy
from tests.sandbox.confined_workspace import ConfinedWorkspace

ALONE = ("userns",)
"""Without namespaces: Landlock alone."""


def build(confined: ConfinedWorkspace, workspace: Path, **more: list[Path]) -> None:
    confined.policy = Policy.build(
        workspace,
        home=confined.outside,
        tmp=confined.tmp,
        readable=more.get("readable", ()),
        writable=more.get("writable", ()),
        hidden=more.get("hidden", ()),
    )


@pytest.fixture
def home(unopened_confined: ConfinedWorkspace) -> Path:
    """The home as workspace, with secrets in it."""
    home = unopened_confined.workspace
    for name in (".ssh/key", ".config/gh/token", ".config/other", ".netrc", "work/file"):
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("secret")
    unopened_confined.policy = Policy.build(
        home, home=home, hidden=[home / "keryx"], tmp=unopened_confined.tmp
    )
    return home


async def test_secrets_below_the_workspace_are_covered(home: Path, confined: ConfinedWorkspace):
    assert await confined.sh("cat .ssh/key .config/gh/token .netrc") == "\n".join(
        f"cat: {name}: No such file or directory" for name in (".ssh/key", ".config/gh/token")
    )
    assert await confined.sh("ls -A .ssh .config/gh; wc -c <.netrc") == ".config/gh:\n\n.ssh:\n0"
    assert await confined.sh("cat .config/other work/file; echo new >work/new") == "secretsecret"
    assert (home / "work/new").read_text() == "new\n"


@pytest.mark.parametrize(
    "command",
    [
        "mv .config away",
        "mv .ssh away",
        "rm -r .ssh",
        "mv .netrc away",
        "rm .netrc",
        "echo x >.netrc",
        "echo x >.ssh/authorized_keys",
        "chmod 777 .ssh .netrc",
        "ln .netrc twin",
        "mount --move .ssh away",
        "umount .ssh",
    ],
)
async def test_what_is_covered_cannot_be_moved_away_for_the_next_keeper(
    home: Path, confined: ConfinedWorkspace, command: str
):
    def look() -> list[tuple[str, int, str]]:
        paths = sorted(home.rglob("*"))
        texts = [path.read_text() if path.is_file() else "" for path in paths]
        modes = [path.stat().st_mode for path in paths]
        return list(zip(map(str, paths), modes, texts, strict=True))

    before = look()
    await confined.sh(command)
    assert look() == before


@pytest.fixture
def workspace_below_what_is_hidden(unopened_confined: ConfinedWorkspace) -> Path:
    confined = unopened_confined
    workspace = confined.outside / "keryx" / "workspaces" / "one"
    workspace.mkdir(parents=True)
    (workspace.parent / "two").mkdir()
    (confined.outside / "keryx" / "secret").touch()
    build(confined, workspace, readable=[confined.outside], hidden=[confined.outside / "keryx"])
    confined.workspace = workspace
    return workspace


async def test_a_workspace_below_a_hidden_folder_is_there_and_its_neighbours_are_not(
    workspace_below_what_is_hidden: Path, confined: ConfinedWorkspace
):
    assert await confined.sh("ls .. ../.. && touch here") == "..:\none\n\n../..:\nworkspaces"
    assert (workspace_below_what_is_hidden / "here").exists()


@pytest.fixture
def grant(unopened_confined: ConfinedWorkspace) -> Path:
    """Granted by the name of a symlink beside it."""
    grant = unopened_confined.base / "grant"
    grant.mkdir()
    (unopened_confined.base / "link").symlink_to(grant)
    build(
        unopened_confined, unopened_confined.workspace, writable=[unopened_confined.base / "link"]
    )
    return grant


async def test_grants_are_there_and_symlinks_to_them_lead_there(
    grant: Path, confined: ConfinedWorkspace
):
    assert await confined.sh(
        f"echo hi >{confined.base}/link/file; cat {grant}/file; ls {confined.base}"
    ) == ("hi\ngrant\nlink\nworkspace")
    assert (grant / "file").read_text() == "hi\n"


async def test_the_system_can_be_used_and_not_changed(confined: ConfinedWorkspace):
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    text = await confined.sh(f"{sys.executable} -c 'import json, sys; print(sys.version[:4])'")
    assert text == version
    for path in ("/usr/new", "/etc/new", "/new", "/dev/new", "/var/new", "/run/new"):
        assert "Read-only file system" in await confined.sh(f"touch {path}")
    assert await confined.sh("echo x | tee /dev/null /dev/full >/dev/zero") != ""
    assert await confined.sh("head -c 3 /dev/urandom | wc -c; test -t 0 || echo no") == "3\nno"


async def test_the_private_folder_is_tmp_and_nobody_else_sees_it(confined: ConfinedWorkspace):
    with tempfile.NamedTemporaryFile(dir="/tmp", prefix="foreign-"):
        listing = await confined.sh("echo x >$TMPDIR/mine; ls /tmp/mine /var/tmp/mine; ls /tmp")
    assert listing.startswith("/tmp/mine\n/var/tmp/mine\n")
    assert "foreign-" not in listing
    assert (confined.tmp / "mine").read_text() == "x\n"
    confined.change(without=ALONE)
    assert "Permission denied" in await confined.sh("echo y >$TMPDIR/mine; echo no >/tmp/no")
    assert (confined.tmp / "mine").read_text() == "y\n"
    confined.change(without=(), tmp=None)
    assert await confined.sh("echo z >/tmp/mine; cat /tmp/mine") == "z"


async def test_loopback_works_and_leads_nowhere_else(confined: ConfinedWorkspace):
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname()); print('connected')"
    )
    assert await confined.sh(f'python3 -c "{code}"; ls /sys 2>&1; tail -n +3 /proc/net/dev') != ""
    assert "connected" in await confined.sh(f'python3 -c "{code}"')
    assert [line.split(":")[0].strip() for line in await interfaces(confined)] == ["lo"]
    confined.change(network=True)
    assert (await confined.confinement()).level == "full"
    assert len(await interfaces(confined)) >= 1
    assert "connected" in await confined.sh(f'python3 -c "{code}"')


async def interfaces(confined: ConfinedWorkspace) -> list[str]:
    return (await confined.sh("tail -n +3 /proc/net/dev")).splitlines()


async def test_a_pseudo_terminal_and_shared_memory_can_be_had(confined: ConfinedWorkspace):
    code = (
        "import os, multiprocessing as m; os.openpty(); "
        "q = m.get_context('fork').Queue(); q.put(3); print(q.get())"
    )
    assert await confined.sh(f'python3 -c "{code}"') == "3"


async def test_with_landlock_alone_a_workspace_that_holds_secrets_is_refused(
    home: Path, confined: ConfinedWorkspace
):
    confined.change(without=ALONE, required=False)
    with pytest.raises(SpawnError, match="must stay hidden; that needs namespaces"):
        await confined.confinement()
    with pytest.raises(SpawnError, match="must stay hidden; that needs namespaces"):
        await confined.start_anyway("true")


@pytest.fixture
def key(unopened_confined: ConfinedWorkspace) -> Path:
    """A secret below a folder that may be read."""
    key = unopened_confined.outside / ".ssh" / "key"
    key.parent.mkdir()
    key.write_text("secret")
    build(unopened_confined, unopened_confined.workspace, readable=[unopened_confined.outside])
    return key


async def test_with_landlock_alone_secrets_below_what_may_be_read_stay_hidden(
    key: Path, confined: ConfinedWorkspace
):
    confined.change(without=ALONE)
    assert await confined.sh(f"cat {confined.outside}/named") == "secret"
    assert "Permission denied" in await confined.sh(f"cat {key}")
    assert "named" in await confined.sh(f"ls {confined.outside}")


async def test_required_refuses_less_than_full_and_names_the_gaps(confined: ConfinedWorkspace):
    confined.change(required=True)
    assert (await confined.confinement()).level == "full"
    confined.change(without=("net",))
    with pytest.raises(SpawnError, match=r"full confinement is required.* can use the network by"):
        await confined.confinement()
    confined.change(without=("userns", "landlock"))
    with pytest.raises(SpawnError, match=r"can read and write all files.*, and can connect to"):
        await confined.start_anyway("true")


async def test_a_hidden_file_with_a_second_name_is_reported(
    home: Path, confined: ConfinedWorkspace
):
    os.link(home / ".ssh" / "key", home / "work" / "twin")
    confinement = await confined.confinement()
    name = str(home / ".ssh" / "key")
    assert confinement.level == "partial"
    assert f"may know {name!r} by another name: it has hard links" in confinement.gaps
    assert await confined.sh("cat work/twin") == "secret"


async def test_a_grant_that_is_missing_or_a_symlink_by_now_is_refused(confined: ConfinedWorkspace):
    confined.change(writable=(str(confined.base / "missing"),))
    with pytest.raises(SpawnError, match="grant a real path"):
        await confined.confinement()
    (confined.base / "swapped").symlink_to(confined.outside)
    for path in ("swapped", "swapped/keryx"):
        confined.change(writable=(str(confined.base / path),))
        with pytest.raises(SpawnError, match="grant a real path"):
            await confined.confinement()
    confined.change(
        writable=(), readable=(*confined.granted.readable, str(confined.base / "swapped/keryx"))
    )
    assert (await confined.confinement()).level == "full"
    assert await confined.sh(f"ls {confined.base}") == "readable\nworkspace"


@pytest.mark.parametrize("without", [(), ALONE])
async def test_the_whole_file_system_is_never_granted(
    confined: ConfinedWorkspace, without: tuple[str, ...]
):
    for grant in ("workspace", "writable", "readable"):
        confined.change(without=without, **{grant: "/" if grant == "workspace" else ("/",)})
        with pytest.raises(SpawnError, match="the whole file system cannot be granted"):
            await confined.confinement()


async def test_a_hidden_folder_cannot_be_the_workspace(confined: ConfinedWorkspace):
    confined.change(workspace=str(confined.outside / "keryx"))
    with pytest.raises(SpawnError, match="must stay hidden; choose another folder"):
        await confined.confinement()


def test_what_only_root_may_read_in_etc_is_hidden_from_the_children_of_root():
    policy = Policy.build("/", home="/")
    for path in Path("/etc").iterdir():
        mode = path.lstat().st_mode
        if os.access(path, os.R_OK) and stat.S_ISREG(mode) and not mode & stat.S_IROTH:
            assert str(path) in policy.hidden
    assert "/etc/passwd" not in policy.hidden


def test_a_policy_names_real_paths_and_keeps_the_other_names(tmp_path: Path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    policy = Policy.build(
        tmp_path / "link", home=tmp_path, hidden=[tmp_path / "link" / "x"], network=True
    )
    assert policy.workspace == str(tmp_path / "real")
    assert policy.links[str(tmp_path / "link")] == policy.workspace
    assert str(tmp_path / "real" / "x") in policy.hidden
    assert str(tmp_path / ".ssh") in policy.hidden
    assert {sys.prefix, sys.base_prefix} <= set(policy.readable)
    wire = policy.wire()
    assert wire["limits"]["processes"] == policy.limits.processes


@pytest.mark.promise("walls.2")
@pytest.mark.parametrize("without", [(), ("landlock",)], ids=str)
async def test_a_read_only_home_cannot_be_written_between_what_is_hidden_either(
    home: Path, confined: ConfinedWorkspace, without: tuple[str, ...]
):
    confined.change(read_only=True, without=without)
    await confined.sh("echo x >new; echo x >.config/new; rm .config/other; echo x >work/file")
    assert sorted(path.name for path in (home / ".config").iterdir()) == ["gh", "other"]
    assert (home / "work/file").read_text() == "secret"
    assert not (home / "new").exists()
