"""Commands that run another command, which their arguments name."""

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
    """The rules to find the inner command."""

    takes: str = ""
    skip: int = 0
    """The count of operands before it."""
    level: Level = "none"
    why: str = ""
    adds: bool = False
    """Whether it adds arguments to the inner command."""
    joins: bool = False
    """Whether a shell runs its operands as one text."""
    writing: str = ""
    scripts: str = ""
    """Options whose value a shell runs."""
    runs_each_operand: bool = False
    """Whether a shell runs every operand."""


RIGHTS = "acts with the rights of another user"
_TRACES = "traces a program"
_FETCHES = "may fetch a package and run it"
ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
UNKNOWN = Argument("whatever comes in", is_literal=False, from_search=True, splits=True)

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
        runs_each_operand=True,
    ),
    "concurrently": Wrapper(takes="-n -c --names", runs_each_operand=True),
    **dict.fromkeys(names("tmux screen"), Wrapper(level="low", why="starts another terminal")),
    "nix-shell": Wrapper(takes="-p -I -A", scripts="--run --command", level="low", why=_FETCHES),
    "sg": Wrapper(skip=1, scripts="-c", level="high", why=RIGHTS),
    "xargs": Wrapper(
        takes="-I -n -P -L -d -a -s -E --max-args --max-procs --delimiter --replace --arg-file",
        adds=True,
    ),
    "watch": Wrapper(takes="-n --interval", joins=True),
}

_WITH_ASSIGNMENTS = names("sudo time cross-env")
FETCHING = names("npx bunx uvx nix-shell")


def wrapped(name: str, arguments: Arguments) -> Action:
    """Return the action of a wrapper, without the action of the inner command."""
    wrapper = WRAPPERS[name]
    scripts = names(wrapper.scripts)
    takes = names(wrapper.takes) | names(wrapper.writing) | scripts
    parts = split(arguments, takes, until_operand=not wrapper.runs_each_operand)
    inner = parts.operands[wrapper.skip :]
    # Before the command sudo accepts assignments, as env does; so does the shell after `time`.
    count = 0
    while name in _WITH_ASSIGNMENTS and inner[count:] and ASSIGNMENT.match(inner[count].text):
        count += 1
    action = Action(
        wrapper.level,
        wrapper.why,
        changes=wrapper.level != "none",
        writes=parts.values(names(wrapper.writing)),
        network=name in FETCHING,
        assigns=tuple(assigned(argument) for argument in inner[:count]),
        texts=parts.values(scripts),
        doubtful=suspects(arguments, inner[count:]),
    )
    inner = inner[count:]
    if not inner and not action.texts:
        return replace(low(f"runs `{name}`"), level=wrapper.level, why=wrapper.why)
    return _with_inner(wrapper, action, parts, inner)


def _with_inner(wrapper: Wrapper, action: Action, parts: Split, inner: Arguments) -> Action:
    if wrapper.joins or wrapper.runs_each_operand or not inner:
        texts = inner if wrapper.runs_each_operand else (joined(inner),) if inner else ()
        return replace(action, texts=(*action.texts, *texts))
    if wrapper.adds:
        marks = {argument.text for argument in parts.values(("-I", "--replace"))} | {"{}"}
        with_inputs = tuple(_fill_marks(argument, marks) for argument in inner)
        inner = with_inputs if with_inputs != inner else (*inner, UNKNOWN)
    return replace(action, commands=(inner,))


def _fill_marks(argument: Argument, marks: set[str]) -> Argument:
    if any(mark in argument.text for mark in marks):
        return Argument(argument.text, is_literal=False, from_search=True)
    return argument


SUSPECT = names(
    """rm unlink shred srm truncate dd sudo doas su sh bash zsh dash ksh env xargs chmod chown
    eval mkfs"""
)
"""Names that are treated as a command wherever they are among the words of a program."""


MAX_SUSPECTS = 40
"""The most words of a program that are searched for commands."""


def suspects(arguments: Arguments, inner: Arguments = ()) -> tuple[Arguments, ...]:
    """Return commands that may be among the words of a program that no rule knows well.

    `inner` is the command in its last words; another rule judges that.
    """
    own_words = arguments[: len(arguments) - len(inner)][:MAX_SUSPECTS]
    tails = [
        arguments[index:]
        for index, argument in enumerate(own_words)
        if argument.is_literal and argument.text.rpartition("/")[2] in SUSPECT
    ]
    # After an unknown option, the next word may be its value and not the command.
    option = own_words[-1].text if own_words else ""
    if inner[1:] and option.startswith("-") and "=" not in option:
        tails.append(inner[1:])
    values = (
        argument.after(argument.text.find("=") + 1) if argument.text[:1] == "-" else argument
        for argument in own_words
    )
    scripts = [
        (Argument("eval"), value)
        for value in values
        if value.is_literal
        and " " in value.text
        and value.text.split()[:1] != []
        and value.text.split()[0] in SUSPECT
    ]
    return (*tails, *scripts)


MAX_INPUTS = 20
"""The most inputs of `parallel` that are judged one by one."""


def parallel(arguments: Arguments) -> Action:
    """GNU `parallel`: a shell runs the words with every input, or every input alone."""
    takes = names("-j --jobs -a --arg-file -N -n -I --joblog --results -S --sshlogin -P --delay")
    parts = split(arguments, takes, until_operand=True)
    words = [argument.text for argument in parts.operands]
    cut = next((index for index, word in enumerate(words) if word.startswith(":::")), len(words))
    command, inputs = parts.operands[:cut], parts.operands[cut + 1 :]
    if not command and not inputs:
        return opaque("runs what comes in")
    if parts.has("-S", "--sshlogin"):
        return high("works on another machine")
    if not inputs:
        with_inputs = tuple(_fill_marks(argument, {"{}"}) for argument in command)
        return Action(commands=(with_inputs if with_inputs != command else (*command, UNKNOWN),))
    lines = [_line(command, argument) for argument in inputs[:MAX_INPUTS]]
    return Action(texts=tuple(lines), opaque=len(inputs) > MAX_INPUTS)


def _line(command: Arguments, value: Argument) -> Argument:
    text = joined(command)
    line = text.text.replace("{}", value.text) if "{}" in text.text else f"{text.text} {value.text}"
    return Argument(line.strip(), text.is_literal and value.is_literal)


def entr(arguments: Arguments) -> Action:
    """`entr` runs a command whenever a file changes; with `-s` that is a text."""
    parts = split(arguments, until_operand=True)
    if parts.has("-s"):
        return Action(texts=parts.operands[:1])
    with_inputs = tuple(_fill_marks(argument, {"/_"}) for argument in parts.operands)
    return Action(commands=(with_inputs,) if with_inputs else ())


def joined(arguments: Arguments) -> Argument:
    """Return the arguments as one text; it is literal if all of them are."""
    return Argument(
        " ".join(argument.text for argument in arguments),
        is_literal=all(argument.is_literal for argument in arguments),
        fetched=any(argument.fetched for argument in arguments),
    )


def assigned(argument: Argument) -> tuple[str, Argument]:
    """Return the name and the value of `name=value`."""
    name, _, _ = argument.text.partition("=")
    return name.removesuffix("+"), argument.after(len(name) + 1)
