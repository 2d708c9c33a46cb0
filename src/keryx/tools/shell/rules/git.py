"""What git commands do: which only look, which change the work, which rewrite what is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from keryx.tools.shell.rules.clients.addresses import hosts_in
from keryx.tools.shell.rules.deeds import (
    Argument,
    Arguments,
    Deed,
    Level,
    Split,
    low,
    names,
    opaque,
    split,
)
from keryx.tools.shell.rules.running.wrappers import joined

_HISTORY = "rewrites history"
_REMOTE = "rewrites history on the remote"
_DISCARDS = "throws away changes that are not committed"
_LOSES = "deletes commits that nothing else may hold"
_RUNS = "starts a program that the options name"
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
        risky={"-D": _LOSES, "-M": _HISTORY, "-f": _HISTORY, "--force": _HISTORY, "-C": _HISTORY},
    ),
    "tag": Verb(
        lists=True,
        loose=False,
        takes="-m -F -u --sort",
        risky={
            "-d": "deletes tags",
            "--delete": "deletes tags",
            "-f": _HISTORY,
            "--force": _HISTORY,
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
            "-e": _RUNS,
            "--edit": _RUNS,
            "--global": "changes git for this user, not only here",
            "--system": "changes git for everybody on this machine",
        },
    ),
    "commit": Verb(
        takes="-m -F -C -c -t --message --file --author --date",
        risky={"--amend": _HISTORY, "--fixup": _HISTORY},
    ),
    "push": Verb(
        why="sends commits to the remote",
        network=True,
        loose=False,
        takes="-o --push-option --repo",
        risky={
            "-f": _REMOTE,
            "--force": _REMOTE,
            "--force-with-lease": _REMOTE,
            "--force-if-includes": _REMOTE,
            "--mirror": _REMOTE,
            "--prune": "deletes branches on the remote",
            "--delete": "deletes branches on the remote",
            "-d": "deletes branches on the remote",
            "--receive-pack": _RUNS,
            "--exec": _RUNS,
        },
    ),
    "fetch": Verb(network=True, risky={"--upload-pack": _RUNS}, takes="--depth -j"),
    "ls-remote": Verb("none", network=True, risky={"--upload-pack": _RUNS, "--exec": _RUNS}),
    "archive": Verb(risky={"--exec": _RUNS}, takes="--format --prefix", writing="-o --output"),
    "format-patch": Verb(writing="-o --output-directory"),
    "init": Verb(takes="-b --initial-branch", risky={"--template": _RUNS}),
    "read-tree": Verb(risky={"-u": _DISCARDS, "--reset": _DISCARDS}),
    "checkout-index": Verb(risky={"-f": _DISCARDS, "--force": _DISCARDS}),
    "symbolic-ref": Verb("high", _HISTORY),
    "apply": Verb(risky={"--unsafe-paths": "changes files outside of the workspace"}),
    **dict.fromkeys(
        names("merge cherry-pick revert am"),
        Verb(takes="-m -s -X --strategy --strategy-option", risky={"--abort": _DISCARDS}),
    ),
    "pull": Verb(
        network=True,
        risky={"--rebase": _HISTORY, "-r": _HISTORY, "--upload-pack": _RUNS, "-f": _DISCARDS},
    ),
    "clone": Verb(
        network=True,
        takes="-b --branch --depth -o -j --filter --reference",
        risky=dict.fromkeys(("-u", "--upload-pack", "-c", "--config", "--template"), _RUNS),
    ),
    "reset": Verb(
        loose=False, risky={"--hard": _DISCARDS, "--merge": _DISCARDS, "--keep": _DISCARDS}
    ),
    "clean": Verb("high", "deletes files that git does not know", loose=False),
    "checkout": Verb(
        takes="-b --orphan",
        risky={"-f": _DISCARDS, "--force": _DISCARDS, "-B": _HISTORY},
        sweeping=_DISCARDS,
    ),
    "restore": Verb(takes="-s --source", sweeping=_DISCARDS),
    "switch": Verb(
        takes="-c --create",
        risky={
            "-f": _DISCARDS,
            "--force": _DISCARDS,
            "--discard-changes": _DISCARDS,
            "-C": _HISTORY,
        },
    ),
    "rm": Verb(risky={"-r": "deletes whole folders", "-f": _DISCARDS}),
    "gc": Verb(risky={"--prune": _LOSES, "--aggressive": _LOSES}),
    "update-ref": Verb("high", _HISTORY),
    "credential": Verb("high", "reads the passwords that git keeps"),
    **dict.fromkeys(names("daemon instaweb http-backend upload-pack"), Verb("high", _SERVES)),
    **dict.fromkeys(names("difftool mergetool shell hook gui citool"), Verb("high", _RUNS)),
    "maintenance": Verb("high", "makes commands run at a later time"),
    **dict.fromkeys(
        names("rebase filter-branch filter-repo replace fast-import prune repack"),
        Verb("high", _HISTORY),
    ),
    **dict.fromkeys(names("send-email svn p4 lfs"), Verb(network=True)),
}

_TAKES = names("-C -c --git-dir --work-tree --namespace --exec-path --config-env")
_PROGRAM_KEYS = re.compile(
    r"""(?ix) (?: alias\..* | pager\..* | core\.(?:pager|editor|sshcommand|askpass|fsmonitor
    |gitproxy) | sequence\.editor | diff\.external | .*\.(?:command|textconv|cmd|program|helper
    |clean|smudge|process|driver) | .*helper )$"""
)
_REFUSED_KEYS = re.compile(r"(?i)(?:core\.hookspath|include\.path|includeif\..*|url\..*)$")
_PLAIN = names("true false yes no")
_MAGIC = re.compile(r":(?:\([^)]*\)|[/!^]*)")


def git(arguments: Arguments) -> Deed:
    """One git command, with the options that come before its name."""
    outer = split(arguments, _TAKES, until_operand=True)
    if not outer.operands:
        return Deed() if outer.has("--version", "--help") else low("runs git")
    name, inner = outer.operands[0], outer.operands[1:]
    if not name.known:
        return opaque("runs a git command that only the shell knows")
    verb = VERBS.get(name.text, Verb())
    parts = split(inner, names(verb.takes) | names(verb.writing) | {"--output"})
    deed = _verb(name.text, verb, parts)
    deed = _extras(name.text, deed, parts, inner)
    return replace(_outer(outer, deed), plain=(Argument("git"), *outer.operands))


def _verb(name: str, verb: Verb, parts: Split) -> Deed:
    level, why = _level(name, verb, parts)
    network = verb.network or name == "ls-remote"
    return Deed(
        level,
        why,
        changes=level != "none",
        network=network and not (verb.lists and level == "none"),
        hosts=hosts_in(parts.operands[:1]) if network else (),
        reads=(Argument("."),),
        writes=parts.values({"--output"} | names(verb.writing)),
        pattern=f"git {name}",
    )


def _level(name: str, verb: Verb, parts: Split) -> tuple[Level, str]:
    first = parts.operands[0].text if parts.operands else ""
    for option, why in verb.risky.items():
        if parts.has(option) and not (name == "config" and _only_looks(verb, parts, first)):
            return "high", why
    if why := _losing(name, verb, parts):
        return "high", why
    if verb.level != "none" and _only_looks(verb, parts, first):
        return "none", ""
    return verb.level, verb.why or f"runs `git {name}`" if verb.level != "none" else ""


def _losing(name: str, verb: Verb, parts: Split) -> str:
    """Why the operands make it high; empty if they do not."""
    for operand in parts.operands:
        if why := verb.losing.get(operand.text, ""):
            return why
        if operand.text.startswith("ext::"):
            return _RUNS
        if name in ("push", "fetch") and operand.text.startswith(("+", ":")):
            return _REMOTE if name == "push" else _HISTORY
    staged = parts.has("--staged") and not parts.has("--worktree")
    if verb.sweeping and not staged and any(map(_is_sweeping, parts.operands)):
        return verb.sweeping
    unknown = [one for one in parts.operands if not one.known]
    if any(one.splits and not verb.loose for one in unknown) or (unknown and name == "push"):
        return "may have options that only the shell knows"
    return ""


def _is_sweeping(operand: Argument) -> bool:
    """Whether a path, as git reads it, stands for everything there is."""
    text = _MAGIC.sub("", operand.text)
    if text != operand.text and text.strip("/*") == "":
        return True
    return text.strip("*./") == "" and text != ""


def _only_looks(verb: Verb, parts: Split, first: str) -> bool:
    if first in names(verb.looking) or parts.has("--list", "--get", "--get-all", "--get-regexp"):
        return True
    if parts.has("-n", "--dry-run") and verb is VERBS["clean"]:
        return not any(one.splits for one in parts.operands)
    if verb is VERBS["config"]:
        return parts.has("-l") or (len(parts.operands) == 1 and not parts.has("--unset"))
    return verb.lists and not parts.operands and not parts.has("-d", "-m", "--delete", "--move")


def _extras(name: str, deed: Deed, parts: Split, inner: Arguments) -> Deed:
    """What single commands do besides: start others, write elsewhere, look outside."""
    operands = parts.operands
    if name == "clone":
        return replace(deed, writes=operands[1:2] or (Argument("."),))
    if name in ("init", "worktree") and operands:
        target = operands[1:2] if name == "worktree" else operands[:1]
        return replace(deed, writes=target)
    if name in ("bisect", "submodule") and operands and operands[0].text in ("run", "foreach"):
        rest = operands[1:]
        if operands[0].text == "foreach":
            return replace(deed, texts=(joined(rest),), network=False)
        return replace(deed, commands=(rest,) if rest else (), network=False)
    if name == "config" and deed.level != "none" and any(map(_runs_programs, operands[:2])):
        return replace(deed, level="high", why="makes git start a program")
    return _looking(name, deed, operands, inner)


def _looking(name: str, deed: Deed, operands: Arguments, inner: Arguments) -> Deed:
    if name == "grep" and any(one.text.startswith(("-O", "--open")) for one in inner):
        return replace(deed, level="high", why=_RUNS, changes=True)
    if name in ("add", "diff", "log", "blame", "grep", "show"):
        outside = tuple(one for one in operands if one.text.startswith(("/", "../", "~")))
        return replace(deed, reads=(*deed.reads, *outside))
    return deed


def _runs_programs(key: Argument) -> bool:
    return bool(_PROGRAM_KEYS.match(key.text) or _REFUSED_KEYS.match(key.text))


def _outer(outer: Split, deed: Deed) -> Deed:
    if any(value is not None and value.text.startswith("ext::") for _, value in outer.options):
        return replace(deed, level="high", why=_RUNS)
    texts: list[Argument] = []
    for value in outer.values(("-c", "--config-env")):
        key, _, setting = value.text.partition("=")
        if _REFUSED_KEYS.match(key) or not value.known:
            return replace(deed, level="high", why=_RUNS, changes=True)
        if _PROGRAM_KEYS.match(key) and setting and setting not in _PLAIN:
            text = setting.removeprefix("!")
            shell = setting.startswith("!") or not key.lower().startswith("alias.")
            texts.append(Argument(text if shell else f"git {text}"))
    if outer.has("--exec-path"):
        return replace(deed, level="high", why=_RUNS, changes=True)
    trees = outer.values(("--work-tree", "--git-dir"))
    directory = outer.values(("-C",))
    looks = deed.level == "none"
    return replace(
        deed,
        texts=(*deed.texts, *texts),
        reads=(*deed.reads, *(trees if looks else ())),
        writes=(*deed.writes, *(() if looks else trees)),
        directory=directory[-1] if directory else None,
    )
