"""`find`: it may delete what it finds, or start commands on it."""

from __future__ import annotations

from dataclasses import replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, names

_ONE = names(
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
        # Whatever comes first is a path; what only the shell knows may be more than that later.
        if count and not arguments[count].known:
            break
        count += 1
    starts: Arguments = arguments[:count] or (Argument("."),)
    writes: list[Argument] = []
    commands: list[Arguments] = []
    deed = Action(reads=starts)
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
