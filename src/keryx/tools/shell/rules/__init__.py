"""What commands do, by their names and words. One line of a table for most of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from posixpath import basename, dirname

from keryx.tools.shell.rules import files, git, tables
from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, low, names, opaque
from keryx.tools.shell.rules.clients import cloud, databases, downloads, programs
from keryx.tools.shell.rules.clients.addresses import hosts_in
from keryx.tools.shell.rules.rule_rows import action_of
from keryx.tools.shell.rules.running import (
    environment,
    interpreters,
    options,
    searches,
    sed,
    wrappers,
)

__all__ = ["Action", "Argument", "Arguments", "deed", "is_known", "name_of"]

_SPECIAL: Mapping[str, Callable[[Arguments], Action]] = {
    "git": git.git,
    "cd": files.cd,
    "chdir": files.cd,
    "pushd": files.cd,
    "popd": files.popd,
    "chmod": files.chmod,
    "dd": files.dd,
    "tar": files.tar,
    "bsdtar": files.tar,
    "gtar": files.tar,
    "unzip": files.unzip,
    "zip": files.zip_,
    "xxd": files.xxd,
    "uniq": files.uniq,
    "rsync": files.rsync,
    "kill": files.kill,
    "history": files.history,
    "fc": files.history,
    "hash": files.hash_,
    "printf": files.printf,
    "read": files.read,
    "mapfile": files.read,
    "readarray": files.read,
    "unset": files.read,
    "crontab": files.crontab,
    "date": files.date,
    "hostname": files.hostname,
    "yq": files.yq,
    "curl": downloads.curl,
    "wget": downloads.wget,
    "eval": interpreters.evaluate,
    "source": interpreters.source,
    ".": interpreters.source,
    "trap": interpreters.trap,
    "sed": sed.sed,
    "gsed": sed.sed,
    **dict.fromkeys(names("awk gawk mawk nawk"), interpreters.awk),
    "env": environment.env,
    "find": searches.find,
    "gfind": searches.find,
    "command": environment.command,
    "su": environment.su,
    "runuser": environment.su,
    "parallel": wrappers.parallel,
    "entr": wrappers.entr,
    "flock": environment.flock,
    "script": environment.script,
    **dict.fromkeys(names("export declare local readonly typeset"), environment.declare),
}

_BINARIES = frozenset(
    {"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"}
    | {"/opt/homebrew/bin"}
)
_VERSIONED = re.compile(r"(python|pypy|pip|perl|ruby|lua|php|node|gcc|g\+\+|clang)-?[0-9][0-9.]*$")
_KNOCKING = names("nc ncat netcat")
_COPYING = names("scp sftp")  # their words are files as well as hosts
_PATH_LIKE = ("/", "~", "../")


def name_of(command: str) -> str:
    """The name that a command is known by, wherever it lies and whatever its version is."""
    if dirname(command) in _BINARIES:
        command = basename(command)
    versioned = _VERSIONED.match(command)
    return versioned.group(1) if versioned is not None else command


def is_known(name: str) -> bool:
    """Whether any rule knows the command."""
    return (
        name in _SPECIAL
        or name in tables.HARMLESS
        or name in tables.READERS
        or name in tables.CHANGERS
        or name in tables.HIGH
        or name in tables.REMOTE
        or name in tables.PROBES
        or name in tables.SHOWING
        or name in wrappers.WRAPPERS
        or name in interpreters.SHELLS
        or name in interpreters.LANGUAGES
        or name in programs.PROGRAMS
        or name in cloud.SERVICES
        or name in databases.CLIENTS
        or name.startswith("mkfs")
    )


def deed(words: Arguments) -> Action:
    """What a command does; `words` begin with its name, and are not empty."""
    command, arguments = words[0], words[1:]
    if not command.known or command.pattern:
        return opaque(f"runs a command that only the shell knows: {command.text}")
    name = name_of(command.text)
    if len(arguments) == 1 and arguments[0].text in tables.VERSIONS and is_known(name):
        return Action(pattern=f"{name} {arguments[0].text}")
    does = _deed(name, command, arguments)
    if options.starts_program(name, arguments):
        does = replace(does, level="high", why=options.WHY, changes=True, opaque=True)
    return replace(does, pattern=name) if does.pattern == "" else does


def _deed(name: str, command: Argument, arguments: Arguments) -> Action:
    for table, rule in (
        (_SPECIAL, lambda: _SPECIAL[name](arguments)),
        (tables.READERS, lambda: action_of(tables.READERS[name], arguments)),
        (tables.CHANGERS, lambda: action_of(tables.CHANGERS[name], arguments)),
        (tables.HARMLESS, Action),
        (tables.HIGH, lambda: high(tables.HIGH[name])),
        (tables.REMOTE, lambda: _remote(name, arguments)),
        (tables.PROBES, lambda: _probe(arguments)),
        (tables.SHOWING, environment.shows_environment),
        (wrappers.WRAPPERS, lambda: wrappers.wrapped(name, arguments)),
        (interpreters.SHELLS, lambda: interpreters.shell(name, arguments)),
        (interpreters.LANGUAGES, lambda: interpreters.language(name, arguments)),
        (programs.PROGRAMS, lambda: programs.program(name, arguments)),
        (cloud.SERVICES, lambda: cloud.service(name, arguments)),
        (databases.CLIENTS, lambda: databases.client(name, arguments)),
    ):
        if name in table:
            return rule()
    if name.startswith("mkfs"):
        return high(tables.HIGH["parted"])
    return _unknown(command, arguments)


def _remote(name: str, arguments: Arguments) -> Action:
    why = tables.REMOTE[name]
    hosts = hosts_in(arguments, bare=name not in _COPYING)
    if name in _KNOCKING and any(one.text.startswith("-z") for one in arguments):
        return _probe(arguments)
    return replace(high(why), network=True, hosts=hosts)


def _probe(arguments: Arguments) -> Action:
    hosts = hosts_in(arguments, bare=True)
    return Action(
        "low", f"reaches out to {', '.join(hosts) or 'a host'}", network=True, hosts=hosts
    )


def _unknown(command: Argument, arguments: Arguments) -> Action:
    """A program that no rule knows: it may do what a local program may."""
    local = (command,) if "/" in command.text else ()
    return replace(
        low(f"runs the program {command.text}"),
        programs=local,
        reads=tuple(one for one in arguments if one.known and one.text.startswith(_PATH_LIKE)),
        doubtful=wrappers.suspects(arguments),
    )
