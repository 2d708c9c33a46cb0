"""Commands that run the command which their own arguments name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keryx.tools.shell.rules.actions import (
    Action,
    Argument,
    Arguments,
    Level,
    Split,
    high,
    low,
    names,
    opaque,
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
    scripts: str = ""
    """Options whose value is given to a shell."""
    each: bool = False
    """Whether every operand is given to a shell."""


RIGHTS = "acts with the rights of another user"
_TRACES = "traces a program"
_FETCHES = "may fetch a package and run it"
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
UNKNOWN = Argument("whatever comes in", known=False, found=True, splits=True)

WRAPPERS: Mapping[str, Wrapper] = {
    "sudo": Wrapper(
        takes="-u -g -h -p -C -r -t -T -U -D -R --user --group --host --prompt --chdir --chroot",
        level="high",
        why=RIGHTS,
    ),
    "doas": Wrapper(takes="-u -C", level="high", why=RIGHTS),
    "pkexec": Wrapper(takes="--user", level="high", why=RIGHTS),
    "gosu": Wrapper(skip=1, level="high", why=RIGHTS),
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
    "strace": Wrapper(takes="-e -s -p -E -P", writing="-o", level="low", why=_TRACES),
    "ltrace": Wrapper(takes="-e -s -p", writing="-o", level="low", why=_TRACES),
    "valgrind": Wrapper(level="low", why=_TRACES),
    "perf": Wrapper(skip=1, takes="-e -p -t -C -F -c", writing="-o --output"),
    "npx": Wrapper(takes="-p --package", scripts="-c --call", level="low", why=_FETCHES),
    "bunx": Wrapper(level="low", why=_FETCHES),
    "uvx": Wrapper(takes="--from --with --python -p", level="low", why=_FETCHES),
    "dotenv": Wrapper(takes="-f -e"),
    **dict.fromkeys(
        names("""fakeroot eatmydata torsocks torify proxychains proxychains4 ccache sccache rr kcov
        heaptrack dumb-init tini catchsegv linux32 linux64 ssh-agent aoss tsocks cross-env
        cross-env-shell with-contenv xwfb-run ts-node-dev coproc sshpass"""),
        Wrapper(),
    ),
    **dict.fromkeys(
        names("setarch arch faketime envdir s6-setuidgid setuidgid runcon"),
        Wrapper(skip=1),
    ),
    "direnv": Wrapper(skip=2),
    "setpriv": Wrapper(level="high", why=RIGHTS),
    "systemd-run": Wrapper(takes="-p -u -E -t --unit --property", level="high", why=RIGHTS),
    "prlimit": Wrapper(takes="-p --pid -o --output"),
    "choom": Wrapper(takes="-n --adjust -p"),
    "numactl": Wrapper(takes="-m -N -C -i -p"),
    "chpst": Wrapper(
        takes="-u -U -b -e -/ -n -l -L -m -d -o -p -f -c -r -t", level="high", why=RIGHTS
    ),
    "cpulimit": Wrapper(takes="-l -p -e"),
    "softlimit": Wrapper(takes="-a -c -d -f -l -m -o -p -r -s -t"),
    "firejail": Wrapper(),
    "bwrap": Wrapper(takes="--ro-bind --bind --dev --proc --chdir"),
    "proot": Wrapper(takes="-S -R -r -b -w", level="low", why=_TRACES),
    "watchexec": Wrapper(takes="-e -w -i -f -d -s", joins=True),
    "nodemon": Wrapper(takes="-e -w --ext --watch --ignore", scripts="-x --exec"),
    "hyperfine": Wrapper(
        takes="-w -r -m -M -n --warmup --runs --min-runs --max-runs -L",
        scripts="-p --prepare -s --setup -c --cleanup --conclude",
        writing="--export-json --export-markdown --export-csv",
        each=True,
    ),
    "concurrently": Wrapper(takes="-n -c --names", each=True),
    **dict.fromkeys(names("tmux screen"), Wrapper(level="low", why="starts another terminal")),
    "nix-shell": Wrapper(takes="-p -I -A", scripts="--run --command", level="low", why=_FETCHES),
    "sg": Wrapper(skip=1, scripts="-c", level="high", why=RIGHTS),
    "xargs": Wrapper(
        takes="-I -n -P -L -d -a -s -E --max-args --max-procs --delimiter --replace --arg-file",
        adds=True,
    ),
    "watch": Wrapper(takes="-n --interval", joins=True),
}

_ASSIGNING = names("sudo time cross-env")
FETCHING = names("npx bunx uvx nix-shell")


def wrapped(name: str, arguments: Arguments) -> Action:
    """What a command of the table does, apart from what the inner one does."""
    wrapper = WRAPPERS[name]
    scripts = names(wrapper.scripts)
    takes = names(wrapper.takes) | names(wrapper.writing) | scripts
    parts = split(arguments, takes, until_operand=not wrapper.each)
    inner = parts.operands[wrapper.skip :]
    # sudo takes assignments before the command, as env does; so does the shell after its `time`.
    count = 0
    while name in _ASSIGNING and inner[count:] and ASSIGNMENT.match(inner[count].text):
        count += 1
    deed = Action(
        wrapper.level,
        wrapper.why,
        changes=wrapper.level != "none",
        writes=parts.values(names(wrapper.writing)),
        network=name in FETCHING,
        assigns=tuple(assigned(one) for one in inner[:count]),
        texts=parts.values(scripts),
        doubtful=suspects(arguments, inner[count:]),
    )
    inner = inner[count:]
    if not inner and not deed.texts:
        return replace(low(f"runs `{name}`"), level=wrapper.level, why=wrapper.why)
    return _with_inner(wrapper, deed, parts, inner)


def _with_inner(wrapper: Wrapper, deed: Action, parts: Split, inner: Arguments) -> Action:
    if wrapper.joins or wrapper.each or not inner:
        texts = inner if wrapper.each else (joined(inner),) if inner else ()
        return replace(deed, texts=(*deed.texts, *texts))
    if wrapper.adds:
        marks = {one.text for one in parts.values(("-I", "--replace"))} | {"{}"}
        filled = tuple(_filled(one, marks) for one in inner)
        inner = filled if filled != inner else (*inner, UNKNOWN)
    return replace(deed, commands=(inner,))


def _filled(argument: Argument, marks: set[str]) -> Argument:
    if any(mark in argument.text for mark in marks):
        return Argument(argument.text, known=False, found=True)
    return argument


SUSPECT = names(
    """rm unlink shred srm truncate dd sudo doas su sh bash zsh dash ksh env xargs chmod chown
    eval mkfs"""
)
"""Names that stand for the command, wherever they stand among the words of a program."""


MOST_SUSPECTS = 40
"""Words of a program that are looked at for commands."""


def suspects(arguments: Arguments, inner: Arguments = ()) -> tuple[Arguments, ...]:
    """Commands that may stand among the words of a program which no rule knows well enough.

    `inner` is the command that its last words are; what stands in there is for its own rule.
    """
    before = arguments[: len(arguments) - len(inner)][:MOST_SUSPECTS]
    tails = [
        arguments[index:]
        for index, one in enumerate(before)
        if one.known and one.text.rpartition("/")[2] in SUSPECT
    ]
    # Of an option that nobody knows, the next word may be the value and not the command.
    option = before[-1].text if before else ""
    if inner[1:] and option.startswith("-") and "=" not in option:
        tails.append(inner[1:])
    values = (one.after(one.text.find("=") + 1) if one.text[:1] == "-" else one for one in before)
    scripts = [
        (Argument("eval"), value)
        for value in values
        if value.known
        and " " in value.text
        and value.text.split()[:1] != []
        and value.text.split()[0] in SUSPECT
    ]
    return (*tails, *scripts)


MOST_INPUTS = 20
"""Inputs of `parallel` that are looked at one by one."""


def parallel(arguments: Arguments) -> Action:
    """GNU `parallel`: a shell runs the words with every input, or every input by itself."""
    takes = names("-j --jobs -a --arg-file -N -n -I --joblog --results -S --sshlogin -P --delay")
    parts = split(arguments, takes, until_operand=True)
    words = [one.text for one in parts.operands]
    cut = next((index for index, word in enumerate(words) if word.startswith(":::")), len(words))
    command, inputs = parts.operands[:cut], parts.operands[cut + 1 :]
    if not command and not inputs:
        return opaque("runs what comes in")
    if parts.has("-S", "--sshlogin"):
        return high("works on another machine")
    if not inputs:
        filled = tuple(_filled(one, {"{}"}) for one in command)
        return Action(commands=(filled if filled != command else (*command, UNKNOWN),))
    lines = [_line(command, one) for one in inputs[:MOST_INPUTS]]
    return Action(texts=tuple(lines), opaque=len(inputs) > MOST_INPUTS)


def _line(command: Arguments, value: Argument) -> Argument:
    text = joined(command)
    line = text.text.replace("{}", value.text) if "{}" in text.text else f"{text.text} {value.text}"
    return Argument(line.strip(), text.known and value.known)


def entr(arguments: Arguments) -> Action:
    """`entr` runs a command whenever a file changes; with `-s` that is a text."""
    parts = split(arguments, until_operand=True)
    if parts.has("-s"):
        return Action(texts=parts.operands[:1])
    filled = tuple(_filled(one, {"/_"}) for one in parts.operands)
    return Action(commands=(filled,) if filled else ())


def joined(arguments: Arguments) -> Argument:
    """Arguments as one text, known if all are."""
    return Argument(
        " ".join(one.text for one in arguments),
        known=all(one.known for one in arguments),
        fetched=any(one.fetched for one in arguments),
    )


def assigned(argument: Argument) -> tuple[str, Argument]:
    """The name and the value of `name=value`."""
    name, _, _ = argument.text.partition("=")
    return name.removesuffix("+"), argument.after(len(name) + 1)
