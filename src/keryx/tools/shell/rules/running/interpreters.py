"""Commands that run a program which is given as text, as a file, or on standard input.

Text for a shell is read on by the same parser. Text in any other language is opaque: it may do
whatever a local program may, and is judged as one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from keryx.tools.shell.rules.actions import (
    Action,
    Argument,
    Arguments,
    high,
    low,
    names,
    opaque,
    split,
)
from keryx.tools.shell.rules.running.wrappers import joined

SHELLS = names("sh bash dash zsh ksh mksh ash rbash")
STDIN = names("- /dev/stdin /dev/fd/0 /proc/self/fd/0")
"""Names of standard input."""


def shell(name: str, arguments: Arguments) -> Action:
    """A shell: `-c text`, a file, or standard input."""
    parts = split(arguments, names("-o -O +o +O --rcfile --init-file"), until_operand=True)
    programs = parts.values(("--rcfile", "--init-file"))
    operands = tuple(one for one in parts.operands if not one.text.startswith("+"))
    if parts.has("-c"):
        if not operands:
            return high(f"runs `{name} -c` without a command")
        return Action(texts=operands[:1], programs=programs)
    if not operands or parts.has("-s") or operands[0].text in STDIN:
        deed = replace(low(f"runs what comes in with `{name}`"), stdin="shell", pattern=None)
        return replace(deed, programs=programs)
    return _runs(name, operands[0], programs)


def _runs(name: str, file: Argument, programs: Arguments = ()) -> Action:
    deed = low(f"runs the program {file.text}")
    return replace(deed, programs=(file, *programs), pattern=f"{name} {file.text}")


def evaluate(arguments: Arguments) -> Action:
    """`eval`: its arguments are one text."""
    return Action(texts=(joined(arguments),) if arguments else ())


def source(arguments: Arguments) -> Action:
    """`.` and `source` run a file in the shell itself."""
    operands = split(arguments, until_operand=True).operands
    if not operands:
        return Action()
    if operands[0].text in STDIN:
        return replace(low("runs what comes in"), stdin="shell")
    return _runs("source", operands[0])


def trap(arguments: Arguments) -> Action:
    """`trap text SIGNAL` runs the text later."""
    operands = split(arguments).operands
    if len(operands) > 1 and operands[0].text not in ("", "-"):
        return Action(texts=operands[:1])
    return Action()


@dataclass(frozen=True, slots=True)
class Language:
    """How an interpreter is told what to run."""

    code: str
    takes: str = ""
    modules: bool = False
    edits: bool = False
    """Whether `-i` makes it change the files that it reads."""


LANGUAGES: Mapping[str, Language] = {
    "python": Language(code="-c", takes="-W -X -m --check-hash-based-pycs", modules=True),
    "pypy": Language(code="-c", takes="-W -X -m", modules=True),
    "perl": Language(code="-e -E", takes="-I -M -m", edits=True),
    "ruby": Language(code="-e", takes="-I -r -C -E", edits=True),
    "node": Language(code="-e -p --eval --print", takes="-r --require --import --loader"),
    "nodejs": Language(code="-e -p --eval --print", takes="-r --require"),
    "php": Language(code="-r", takes="-d -c -z"),
    "lua": Language(code="-e", takes="-l"),
    "Rscript": Language(code="-e"),
    "osascript": Language(code="-e", takes="-l"),
    "tclsh": Language(code=""),
    "ts-node": Language(code="-e --eval", takes="-P --project -r"),
    "tsx": Language(code="-e --eval"),
    "groovy": Language(code="-e"),
    "scala": Language(code="-e"),
    "julia": Language(code="-e -E --eval"),
    "elixir": Language(code="-e --eval"),
    "ghc": Language(code="-e"),
    "expect": Language(code="-c"),
}


def language(name: str, arguments: Arguments) -> Action:
    """An interpreter: code as text, a module, a file, or standard input."""
    known = LANGUAGES[name]
    code = names(known.code)
    parts = split(arguments, names(known.takes) | code, until_operand=not known.edits)
    if modules := known.modules and parts.values(("-m",)):
        return _module(name, modules[0], arguments)
    if texts := parts.values(code):
        deed = replace(low(f"runs code in {name}"), code=texts, pattern=None, opaque=True)
        if known.edits and parts.has("-i"):
            return replace(deed, writes=parts.operands)
        return replace(deed, reads=tuple(one for one in parts.operands if one.known))
    if parts.operands and parts.operands[0].text not in STDIN:
        return _runs(name, parts.operands[0])
    return replace(low(f"runs what comes in with `{name}`"), stdin="code", pattern=None)


def _module(name: str, module: Argument, arguments: Arguments) -> Action:
    texts = [one.text for one in arguments]
    # Also `-mpip`, where name and option are one word.
    index = next(i for i, text in enumerate(texts) if text.endswith(module.text))
    inner = arguments[index + 1 :]
    pattern = f"{name} -m {module.text}"
    if not module.known:
        return opaque("runs a module that only the shell knows")
    if module.text == "pip":
        return Action(commands=((Argument("pip"), *inner),))
    if module.text in ("venv", "virtualenv"):
        deed = low("makes a virtual environment")
        return replace(deed, writes=split(inner, ("--prompt",)).operands, pattern=pattern)
    return replace(low(f"runs the module {module.text}"), pattern=pattern)


_AWK_ACTS = re.compile(r"system\s*\(|getline|>|(?<!\|)\|(?!\|)|@load|ENVIRON")


def awk(arguments: Arguments) -> Action:
    """`awk`: its program may start commands and write files."""
    takes = names("-F -v -f -i --file --field-separator --assign --include")
    parts = split(arguments, takes)
    files = parts.values(("-f", "--file"))
    operands = parts.operands
    code = () if files else operands[:1]
    reads = tuple(one for one in operands[len(code) :] if "=" not in one.text)
    acts = any(not one.known or _AWK_ACTS.search(one.text) for one in code)
    if files or acts or parts.has("-i", "--include"):
        why = "runs an awk program that may write files or start commands"
        return replace(low(why), code=code, programs=files, reads=reads, pattern=None, opaque=acts)
    return Action(reads=reads)
