"""Clients of databases: what they are told may delete what no folder holds, or start a shell."""

from __future__ import annotations

import re

from keryx.tools.shell.rules.actions import Action, Arguments, Level, names, split
from keryx.tools.shell.rules.clients.addresses import hosts_in, is_local

CLIENTS = names("psql mysql mariadb sqlite3 redis-cli mongo mongosh flushall")

_LOST = names("drop truncate delete alter flushall flushdb dropdatabase")
_ESCAPES = re.compile(
    r"""(?ix) (?:^|\s|["';])(?: \.(?:sh|sy|re|lo|ou|onc|im|op|sa|ba|ex|log|cd|ar|www|res)\w*
    | \\!|\\o\b|\\g\s*\||\\copy\b|\\i\b | system\s | source\s )
    | \b(?:writefile|load_extension|edit|readfile|load_file)\s*\( | \b(?:from|to)\s+program\b
    | \binto\s+(?:outfile|dumpfile)\b | \bload\s+data\b | \bconfig\s+set\b | \bmodule\s+load\b"""
)
"""What leaves the database: a shell, a file, another program."""
_FILES = names("-f --file -init -cmd --eval --init-command --pager")
_HOSTS = names("-h --host")


def client(name: str, arguments: Arguments) -> Action:
    """A client of a database."""
    texts = [one.text for one in arguments]
    words = {word.strip(";\"'()").lower() for text in texts for word in text.split()}
    level: Level = "low"
    why = f"works on a database with {name}"
    if words & _LOST:
        level, why = "high", "changes or deletes data"
    elif any(_ESCAPES.search(text) for text in texts):
        level, why = "high", "reaches from a database to files or programs"
    elif any(not one.known for one in arguments) or not _FILES.isdisjoint(texts):
        level, why = "high", "runs statements that nobody sees"
    hosts = _hosts(arguments)
    local = name == "sqlite3" or all(map(is_local, hosts))
    return Action(
        level, why, changes=True, network=not local, hosts=hosts, pattern=name, stdin="statements"
    )


def _hosts(arguments: Arguments) -> tuple[str, ...]:
    parts = split(
        arguments, _HOSTS | names("-p -U -u -d -P -c -e --port --user --dbname --command")
    )
    hosts = (*(one.text for one in parts.values(_HOSTS)), *hosts_in(parts.operands))
    # Without any, they look for a server on this machine.
    return hosts or ("localhost",)
