"""`find`: it may delete what it finds, or start commands on it."""

from __future__ import annotations

from dataclasses import replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, names

_WITH_VALUE = names(
    """-name -iname -path -ipath -wholename -regex -iregex -type -xtype -size -mtime -atime
    -ctime -mmin -amin -cmin -newer -anewer -cnewer -user -group -uid -gid -perm -maxdepth
    -mindepth -printf -links -inum -samefile -regextype -used -fstype -lname -ilname -D
    -newermt -newerct -newerat"""
)
_STARTING = names("-exec -execdir -ok -okdir")
_PRINTING = names("-fprint -fprint0 -fls -fprintf")


def find(arguments: Arguments) -> Action:
    """`find` reads trees, and may delete what it finds or start commands on it."""
    count = 0
    while count < len(arguments) and not arguments[count].text.startswith(("-", "(", "!", "\\")):
        # The first words are paths; a later value that only the shell knows may be an expression.
        if count and not arguments[count].is_literal:
            break
        count += 1
    starts: Arguments = arguments[:count] or (Argument("."),)
    writes: list[Argument] = []
    commands: list[Arguments] = []
    action = Action(reads=starts)
    remaining = list(reversed(arguments[count:]))
    while remaining:
        word = remaining.pop()
        if word.text == "-delete":
            action = replace(high("deletes whatever the search finds"), reads=starts)
        elif word.text in _STARTING:
            commands.append(_read_command(remaining, starts))
        elif word.text in _PRINTING and remaining:
            writes.append(remaining.pop())
        elif word.text in _WITH_VALUE and remaining:
            remaining.pop()
        elif not word.is_literal:
            return high("searches by an expression that only the shell knows")
    return replace(action, writes=tuple(writes), commands=tuple(commands))


def _read_command(remaining: list[Argument], starts: Arguments) -> Arguments:
    inner: list[Argument] = []
    while remaining:
        word = remaining.pop()
        if word.text == ";" or (word.text == "+" and inner and "{}" in inner[-1].text):
            break
        inner.append(word)
    return tuple(_search_result(word, starts) for word in inner)


def _search_result(word: Argument, starts: Arguments) -> Argument:
    if "{}" not in word.text:
        return word
    start, *others = starts
    if word.text != "{}" or others or not start.is_literal:
        return Argument(word.text, is_literal=False, from_search=True)
    return Argument(f"{start.text}/{{}}", from_search=True)
