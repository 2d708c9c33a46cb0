"""What is known of git's subcommands, one line each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keryx.tools.shell.rules.actions import Level, names

HISTORY = "rewrites history"
REMOTE = "rewrites history on the remote"
_DISCARDS = "throws away changes that are not committed"
_LOSES = "deletes commits that nothing else may hold"
RUNS = "starts a program that the options name"
_SERVES = "opens a server"


@dataclass(frozen=True, slots=True)
class Verb:
    """What is known of one subcommand."""

    level: Level = "low"
    why: str = ""
    network: bool = False
    risky: Mapping[str, str] = field(default_factory=dict[str, str])
    takes: str = ""
    lists: bool = False
    """Whether it only looks if it gets no operands."""
    looking: str = ""
    """First operands that make it only look."""
    losing: Mapping[str, str] = field(default_factory=dict[str, str])
    """Operands that make it high, and why."""
    sweeping: str = ""
    """Why it is high if its operands stand for everything there is."""
    loose: bool = True
    """Whether a value that may become options, or nothing, is no matter."""
    writing: str = ""
    """Options whose value is a path that is written."""


_SHOW = Verb(
    "none",
    takes="--format --pretty -n --since --until --author --grep -S -G -L -U",
    risky={"--ext-diff": "starts a program that the settings name"},
)

VERBS: Mapping[str, Verb] = {
    **dict.fromkeys(
        names(
            """status log show blame annotate describe shortlog ls-files ls-tree cat-file
            rev-parse rev-list merge-base name-rev count-objects for-each-ref show-ref show-branch
            diff diff-tree diff-index diff-files range-diff cherry whatchanged check-ignore
            check-attr var version help verify-commit verify-tag fsck grep
            check-ref-format stripspace patch-id"""
        ),
        _SHOW,
    ),
    "branch": Verb(
        lists=True,
        loose=False,
        takes="--sort --contains --merged --format",
        risky={"-D": _LOSES, "-M": HISTORY, "-f": HISTORY, "--force": HISTORY, "-C": HISTORY},
    ),
    "tag": Verb(
        lists=True,
        loose=False,
        takes="-m -F -u --sort",
        risky={
            "-d": "deletes tags",
            "--delete": "deletes tags",
            "-f": HISTORY,
            "--force": HISTORY,
        },
    ),
    "remote": Verb(lists=True, looking="show get-url"),
    "stash": Verb(
        loose=False,
        looking="list show",
        losing={"drop": _DISCARDS, "clear": _DISCARDS},
        takes="-m --message",
    ),
    "reflog": Verb(lists=True, looking="show exists", losing={"expire": _LOSES, "delete": _LOSES}),
    "notes": Verb(lists=True, looking="list show"),
    "worktree": Verb(looking="list", risky={"--force": _DISCARDS, "-f": _DISCARDS}),
    "bisect": Verb(looking="log view visualize"),
    "submodule": Verb(
        lists=True, looking="status summary", network=True, losing={"deinit": _DISCARDS}
    ),
    "config": Verb(
        looking="list get",
        takes="-f --file --blob --type --default",
        risky={
            "-e": RUNS,
            "--edit": RUNS,
            "--global": "changes git for this user, not only here",
            "--system": "changes git for everybody on this machine",
        },
    ),
    "commit": Verb(
        takes="-m -F -C -c -t --message --file --author --date",
        risky={"--amend": HISTORY, "--fixup": HISTORY},
    ),
    "push": Verb(
        why="sends commits to the remote",
        network=True,
        loose=False,
        takes="-o --push-option --repo",
        risky={
            "-f": REMOTE,
            "--force": REMOTE,
            "--force-with-lease": REMOTE,
            "--force-if-includes": REMOTE,
            "--mirror": REMOTE,
            "--prune": "deletes branches on the remote",
            "--delete": "deletes branches on the remote",
            "-d": "deletes branches on the remote",
            "--receive-pack": RUNS,
            "--exec": RUNS,
        },
    ),
    "fetch": Verb(network=True, risky={"--upload-pack": RUNS}, takes="--depth -j"),
    "ls-remote": Verb("none", network=True, risky={"--upload-pack": RUNS, "--exec": RUNS}),
    "archive": Verb(risky={"--exec": RUNS}, takes="--format --prefix", writing="-o --output"),
    "format-patch": Verb(writing="-o --output-directory"),
    "init": Verb(takes="-b --initial-branch", risky={"--template": RUNS}),
    "read-tree": Verb(risky={"-u": _DISCARDS, "--reset": _DISCARDS}),
    "checkout-index": Verb(risky={"-f": _DISCARDS, "--force": _DISCARDS}),
    "symbolic-ref": Verb("high", HISTORY),
    "apply": Verb(risky={"--unsafe-paths": "changes files outside of the workspace"}),
    **dict.fromkeys(
        names("merge cherry-pick revert am"),
        Verb(takes="-m -s -X --strategy --strategy-option", risky={"--abort": _DISCARDS}),
    ),
    "pull": Verb(
        network=True,
        risky={"--rebase": HISTORY, "-r": HISTORY, "--upload-pack": RUNS, "-f": _DISCARDS},
    ),
    "clone": Verb(
        network=True,
        takes="-b --branch --depth -o -j --filter --reference",
        risky=dict.fromkeys(("-u", "--upload-pack", "-c", "--config", "--template"), RUNS),
    ),
    "reset": Verb(
        loose=False, risky={"--hard": _DISCARDS, "--merge": _DISCARDS, "--keep": _DISCARDS}
    ),
    "clean": Verb("high", "deletes files that git does not know", loose=False),
    "checkout": Verb(
        takes="-b --orphan",
        risky={"-f": _DISCARDS, "--force": _DISCARDS, "-B": HISTORY},
        sweeping=_DISCARDS,
    ),
    "restore": Verb(takes="-s --source", sweeping=_DISCARDS),
    "switch": Verb(
        takes="-c --create",
        risky={
            "-f": _DISCARDS,
            "--force": _DISCARDS,
            "--discard-changes": _DISCARDS,
            "-C": HISTORY,
        },
    ),
    "rm": Verb(risky={"-r": "deletes whole folders", "-f": _DISCARDS}),
    "gc": Verb(risky={"--prune": _LOSES, "--aggressive": _LOSES}),
    "update-ref": Verb("high", HISTORY),
    "credential": Verb("high", "reads the passwords that git keeps"),
    **dict.fromkeys(names("daemon instaweb http-backend upload-pack"), Verb("high", _SERVES)),
    **dict.fromkeys(names("difftool mergetool shell hook gui citool"), Verb("high", RUNS)),
    "maintenance": Verb("high", "makes commands run at a later time"),
    **dict.fromkeys(
        names("rebase filter-branch filter-repo replace fast-import prune repack"),
        Verb("high", HISTORY),
    ),
    **dict.fromkeys(names("send-email svn p4 lfs"), Verb(network=True)),
}
