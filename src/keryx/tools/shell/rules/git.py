"""What git commands do: which only look, which change the work, which rewrite what is written."""

from __future__ import annotations

import re
from dataclasses import replace

from keryx.tools.shell.rules.actions import (
    Action,
    Argument,
    Arguments,
    Level,
    Split,
    low,
    names,
    opaque,
    split,
)
from keryx.tools.shell.rules.clients.addresses import hosts_in
from keryx.tools.shell.rules.git_verbs import HISTORY, REMOTE, RUNS, VERBS, Verb
from keryx.tools.shell.rules.running.wrappers import joined

_TAKES = names("-C -c --git-dir --work-tree --namespace --exec-path --config-env")
_PROGRAM_KEYS = re.compile(
    r"""(?ix) (?: alias\..* | pager\..* | core\.(?:pager|editor|sshcommand|askpass|fsmonitor
    |gitproxy) | sequence\.editor | diff\.external | .*\.(?:command|textconv|cmd|program|helper
    |clean|smudge|process|driver) | .*helper )$"""
)
_REFUSED_KEYS = re.compile(r"(?i)(?:core\.hookspath|include\.path|includeif\..*|url\..*)$")
_PLAIN = names("true false yes no")
_MAGIC = re.compile(r":(?:\([^)]*\)|[/!^]*)")


def git(arguments: Arguments) -> Action:
    """One git command, with the options that come before its name."""
    outer = split(arguments, _TAKES, until_operand=True)
    if not outer.operands:
        return Action() if outer.has("--version", "--help") else low("runs git")
    name, inner = outer.operands[0], outer.operands[1:]
    if not name.known:
        return opaque("runs a git command that only the shell knows")
    verb = VERBS.get(name.text, Verb())
    parts = split(inner, names(verb.takes) | names(verb.writing) | {"--output"})
    deed = _verb(name.text, verb, parts)
    deed = _extras(name.text, deed, parts, inner)
    return replace(_outer(outer, deed), plain=(Argument("git"), *outer.operands))


def _verb(name: str, verb: Verb, parts: Split) -> Action:
    level, why = _level(name, verb, parts)
    network = verb.network or name == "ls-remote"
    return Action(
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
            return RUNS
        if name in ("push", "fetch") and operand.text.startswith(("+", ":")):
            return REMOTE if name == "push" else HISTORY
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


def _extras(name: str, deed: Action, parts: Split, inner: Arguments) -> Action:
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


def _looking(name: str, deed: Action, operands: Arguments, inner: Arguments) -> Action:
    if name == "grep" and any(one.text.startswith(("-O", "--open")) for one in inner):
        return replace(deed, level="high", why=RUNS, changes=True)
    if name in ("add", "diff", "log", "blame", "grep", "show"):
        outside = tuple(one for one in operands if one.text.startswith(("/", "../", "~")))
        return replace(deed, reads=(*deed.reads, *outside))
    return deed


def _runs_programs(key: Argument) -> bool:
    return bool(_PROGRAM_KEYS.match(key.text) or _REFUSED_KEYS.match(key.text))


def _outer(outer: Split, deed: Action) -> Action:
    if any(value is not None and value.text.startswith("ext::") for _, value in outer.options):
        return replace(deed, level="high", why=RUNS)
    texts: list[Argument] = []
    for value in outer.values(("-c", "--config-env")):
        key, _, setting = value.text.partition("=")
        if _REFUSED_KEYS.match(key) or not value.known:
            return replace(deed, level="high", why=RUNS, changes=True)
        if _PROGRAM_KEYS.match(key) and setting and setting not in _PLAIN:
            text = setting.removeprefix("!")
            shell = setting.startswith("!") or not key.lower().startswith("alias.")
            texts.append(Argument(text if shell else f"git {text}"))
    if outer.has("--exec-path"):
        return replace(deed, level="high", why=RUNS, changes=True)
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
