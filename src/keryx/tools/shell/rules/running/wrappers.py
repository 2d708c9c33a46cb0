"""Commands that run the command which their own arguments name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keryx.tools.shell.rules.deeds import (
    Argument,
    Arguments,
    Deed,
    Level,
    high,
    low,
    names,
    split,
)


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find the inner command."""

    takes: str = ""
    skip: int = 0
    """Operands that come before it."""
    level: Level = "none"
    why: str = ""
    adds: bool = False
    """Whether it gives the inner command arguments of its own."""
    joins: bool = False
    """Whether it gives its operands to a shell, as one text."""
    writing: str = ""


_RIGHTS = "acts with the rights of another user"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_UNKNOWN = Argument("whatever comes in", known=False, found=True, splits=True)

WRAPPERS: Mapping[str, Wrapper] = {
    "sudo": Wrapper(
        takes="-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot",
        level="high",
        why=_RIGHTS,
    ),
    "doas": Wrapper(takes="-u -C", level="high", why=_RIGHTS),
    "pkexec": Wrapper(takes="--user", level="high", why=_RIGHTS),
    "gosu": Wrapper(skip=1, level="high", why=_RIGHTS),
    "nice": Wrapper(takes="-n --adjustment"),
    "ionice": Wrapper(takes="-c -n --class --classdata"),
    "nohup": Wrapper(),
    "setsid": Wrapper(),
    "time": Wrapper(takes="-f --format", writing="-o --output"),
    "timeout": Wrapper(takes="-k -s --kill-after --signal", skip=1),
    "gtimeout": Wrapper(takes="-k -s --kill-after --signal", skip=1),
    "stdbuf": Wrapper(takes="-i -o -e --input --output --error"),
    "unbuffer": Wrapper(),
    "builtin": Wrapper(),
    "exec": Wrapper(takes="-a"),
    "taskset": Wrapper(skip=1),
    "chrt": Wrapper(skip=1),
    "caffeinate": Wrapper(takes="-t -w"),
    "chronic": Wrapper(),
    "busybox": Wrapper(),
    "toybox": Wrapper(),
    "xvfb-run": Wrapper(takes="-n -s -e"),
    "dbus-run-session": Wrapper(),
    "strace": Wrapper(takes="-e -s -p -E -P", writing="-o", level="low", why="traces a program"),
    "ltrace": Wrapper(takes="-e -s -p", writing="-o", level="low", why="traces a program"),
    "valgrind": Wrapper(level="low", why="traces a program"),
    "npx": Wrapper(takes="-p --package", level="low", why="may fetch a package and run it"),
    "bunx": Wrapper(level="low", why="may fetch a package and run it"),
    "uvx": Wrapper(takes="--from --with", level="low", why="may fetch a package and run it"),
    "dotenv": Wrapper(takes="-f -e"),
    "parallel": Wrapper(takes="-j --jobs -a --arg-file -N", adds=True),
    "entr": Wrapper(),
    "xargs": Wrapper(
        takes="-I -n -P -L -d -a -s -E --max-args --max-procs --delimiter --replace --arg-file",
        adds=True,
    ),
    "watch": Wrapper(takes="-n --interval", joins=True),
}

_ASSIGNING = names("sudo time")
FETCHING = names("npx bunx uvx")


def wrapped(name: str, arguments: Arguments) -> Deed:
    """What a command of the table does, apart from what the inner one does."""
    wrapper = WRAPPERS[name]
    takes = names(wrapper.takes) | names(wrapper.writing)
    parts = split(arguments, takes, until_operand=True)
    inner = parts.operands[wrapper.skip :]
    # sudo takes assignments before the command, as env does; so does the shell after its `time`.
    count = 0
    while name in _ASSIGNING and inner[count:] and _ASSIGNMENT.match(inner[count].text):
        count += 1
    assigns = tuple(assigned(one) for one in inner[:count])
    inner = inner[count:]
    deed = Deed(
        wrapper.level,
        wrapper.why,
        changes=wrapper.level != "none",
        writes=parts.values(names(wrapper.writing)),
        network=name in FETCHING,
        assigns=assigns,
    )
    if not inner:
        return replace(low(f"runs `{name}`"), level=wrapper.level, why=wrapper.why)
    if wrapper.joins:
        return replace(deed, texts=(joined(inner),))
    if wrapper.adds:
        marks = {one.text for one in parts.values(("-I", "--replace"))} | {"{}"}
        filled = tuple(_filled(one, marks) for one in inner)
        inner = filled if filled != inner else (*inner, _UNKNOWN)
    return replace(deed, commands=(inner,))


def _filled(argument: Argument, marks: set[str]) -> Argument:
    if any(mark in argument.text for mark in marks):
        return Argument(argument.text, known=False, found=True)
    return argument


def joined(arguments: Arguments) -> Argument:
    """Arguments as one text, known if all are."""
    return Argument(
        " ".join(one.text for one in arguments),
        known=all(one.known for one in arguments),
        fetched=any(one.fetched for one in arguments),
    )


def env(arguments: Arguments) -> Deed:
    """`env` sets variables and runs a command; alone it prints them all."""
    takes = names("-u -C -S --unset --chdir --split-string")
    # A single dash is an option here: it empties the environment.
    words = tuple(Argument("-i") if one.text == "-" else one for one in arguments)
    parts = split(words, takes, until_operand=True)
    count = 0
    while count < len(parts.operands) and _ASSIGNMENT.match(parts.operands[count].text):
        count += 1
    inner = parts.operands[count:]
    texts = parts.values(("-S", "--split-string"))
    if not inner and not texts:
        return shows_environment()
    directory = parts.values(("-C", "--chdir"))
    return Deed(
        assigns=tuple(assigned(one) for one in parts.operands[:count]),
        commands=(inner,) if inner else (),
        # What is split here stands before the other words.
        texts=tuple(joined((text, *inner)) for text in texts),
        directory=directory[0] if directory else None,
    )


def assigned(argument: Argument) -> tuple[str, Argument]:
    """The name and the value of `name=value`."""
    name, _, _ = argument.text.partition("=")
    return name.removesuffix("+"), argument.after(len(name) + 1)


def declare(arguments: Arguments) -> Deed:
    """`export` and its like; without names they print what is set."""
    operands = split(arguments).operands
    if not operands:
        return shows_environment() if arguments else Deed()
    return Deed(assigns=tuple(assigned(one) for one in operands if "=" in one.text))


def shows_environment() -> Deed:
    return Deed("low", "shows the environment, which may hold secrets")


def command(arguments: Arguments) -> Deed:
    """`command` runs a command, unless it is asked what the command is."""
    parts = split(arguments, until_operand=True)
    if parts.has("-v", "-V") or not parts.operands:
        return Deed()
    return Deed(commands=(parts.operands,))


def su(arguments: Arguments) -> Deed:
    """`su` runs a text, or a shell."""
    parts = split(arguments, names("-c -s -g --command --shell --session-command"))
    texts = parts.values(("-c", "--command", "--session-command"))
    return replace(high(_RIGHTS), texts=texts)


def flock(arguments: Arguments) -> Deed:
    """`flock FILE command`, or `flock FILE -c text`."""
    parts = split(arguments, names("-w -E --timeout"), until_operand=True)
    inner = parts.operands[1:]
    if inner and inner[0].text in ("-c", "--command"):
        return Deed(writes=parts.operands[:1], texts=inner[1:2])
    return Deed(writes=parts.operands[:1], commands=(inner,) if inner else ())


def script(arguments: Arguments) -> Deed:
    """`script` records what a command prints, or a shell."""
    parts = split(arguments, names("-c -T -t -I -O -B --command"))
    return replace(
        low("records a shell"),
        texts=parts.values(("-c", "--command")),
        writes=parts.operands[:1] or (Argument("typescript"),),
    )


_ONE = names(
    """-name -iname -path -ipath -wholename -regex -iregex -type -xtype -size -mtime -atime
    -ctime -mmin -amin -cmin -newer -anewer -cnewer -user -group -uid -gid -perm -maxdepth
    -mindepth -printf -links -inum -samefile -regextype -used -fstype -lname -ilname -D
    -newermt -newerct -newerat"""
)
_STARTING = names("-exec -execdir -ok -okdir")
_PRINTING = names("-fprint -fprint0 -fls -fprintf")


def find(arguments: Arguments) -> Deed:
    """`find` reads trees, and may delete what it finds or start commands on it."""
    count = 0
    while count < len(arguments) and not arguments[count].text.startswith(("-", "(", "!", "\\")):
        # Whatever comes first is a path; what only the shell knows may be more than that later.
        if count and not arguments[count].known:
            break
        count += 1
    starts: Arguments = arguments[:count] or (Argument("."),)
    writes: list[Argument] = []
    commands: list[Arguments] = []
    deed = Deed(reads=starts)
    rest = list(reversed(arguments[count:]))
    while rest:
        word = rest.pop()
        if word.text == "-delete":
            deed = replace(high("deletes whatever the search finds"), reads=starts)
        elif word.text in _STARTING:
            commands.append(_started(rest, starts))
        elif word.text in _PRINTING and rest:
            writes.append(rest.pop())
        elif word.text in _ONE and rest:
            rest.pop()
        elif not word.known:
            return high("searches by an expression that only the shell knows")
    return replace(deed, writes=tuple(writes), commands=tuple(commands))


def _started(rest: list[Argument], starts: Arguments) -> Arguments:
    inner: list[Argument] = []
    while rest:
        word = rest.pop()
        if word.text == ";" or (word.text == "+" and inner and "{}" in inner[-1].text):
            break
        inner.append(word)
    return tuple(_found(word, starts) for word in inner)


def _found(word: Argument, starts: Arguments) -> Argument:
    if "{}" not in word.text:
        return word
    start, *others = starts
    if word.text != "{}" or others or not start.known:
        return Argument(word.text, known=False, found=True)
    return Argument(f"{start.text}/{{}}", found=True)
