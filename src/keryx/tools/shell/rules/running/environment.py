"""Commands that change what other commands find around them: variables, users, locks, records."""

from __future__ import annotations

from dataclasses import replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, low, names, split
from keryx.tools.shell.rules.running.wrappers import (
    RIGHTS,
    assigned,
    joined,
    suspects,
)


def env(arguments: Arguments) -> Action:
    """`env` sets variables and runs a command; alone it prints them all."""
    takes = names("-u -C -S --unset --chdir --split-string")
    # A single dash is an option here: it empties the environment.
    words = tuple(Argument("-i") if one.text == "-" else one for one in arguments)
    parts = split(words, takes, until_operand=True)
    count = 0
    # Whatever holds an equals sign sets something, also under a name that no shell would take.
    while count < len(parts.operands) and "=" in parts.operands[count].text:
        count += 1
    inner = parts.operands[count:]
    texts = parts.values(("-S", "--split-string"))
    if not inner and not texts:
        return shows_environment()
    directory = parts.values(("-C", "--chdir"))
    return Action(
        assigns=tuple(assigned(one) for one in parts.operands[:count]),
        commands=(inner,) if inner else (),
        # What is split here stands before the other words.
        texts=tuple(joined((text, *inner)) for text in texts),
        directory=directory[0] if directory else None,
        doubtful=suspects(arguments, inner),
    )


def declare(arguments: Arguments) -> Action:
    """`export` and its like; without names they print what is set."""
    operands = split(arguments).operands
    if not operands:
        return shows_environment() if arguments else Action()
    return Action(assigns=tuple(assigned(one) for one in operands if "=" in one.text))


def shows_environment() -> Action:
    return Action("low", "shows the environment, which may hold secrets")


def command(arguments: Arguments) -> Action:
    """`command` runs a command, unless it is asked what the command is."""
    parts = split(arguments, until_operand=True)
    if parts.has("-v", "-V") or not parts.operands:
        return Action()
    return Action(commands=(parts.operands,))


def su(arguments: Arguments) -> Action:
    """`su` runs a text, or a shell."""
    parts = split(arguments, names("-c -s -g --command --shell --session-command"))
    texts = parts.values(("-c", "--command", "--session-command"))
    return replace(high(RIGHTS), texts=texts)


def flock(arguments: Arguments) -> Action:
    """`flock FILE command`, or `flock FILE -c text`."""
    parts = split(arguments, names("-w -E --timeout"), until_operand=True)
    inner = parts.operands[1:]
    if inner and inner[0].text in ("-c", "--command"):
        return Action(writes=parts.operands[:1], texts=inner[1:2])
    return Action(writes=parts.operands[:1], commands=(inner,) if inner else ())


def script(arguments: Arguments) -> Action:
    """`script` records what a command prints, or a shell."""
    parts = split(arguments, names("-c -T -t -I -O -B --command"))
    return replace(
        low("records a shell"),
        texts=parts.values(("-c", "--command")),
        writes=parts.operands[:1] or (Argument("typescript"),),
    )
