"""Options that make ordinary commands start a program, one line a command.

What they start is named by a value that no rule reads on; a person decides about it, unless it is
one of the programs that everybody puts there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from keryx.tools.shell.rules.actions import Argument, Arguments, matches, names

WHY = "starts a program that the options name"

_COMPILERS = names("gcc g++ cc c++ clang clang++ cpp gfortran")
_EDITORS = names("vim vi nvim view ex gvim vimdiff rvim")
_NODE = names("npm pnpm yarn bun npx")

RUNNING: Mapping[str, str] = {
    "man": "-P --pager -H --html",
    "apropos": "-P --pager",
    **dict.fromkeys(("bat", "batcat", "delta", "ag", "ack"), "--pager"),
    "less": "--lesskey-src --lesskey-file -k",
    "split": "--filter",
    "sort": "--compress-program",
    "rg": "--pre --hostname-bin",
    "go": "-exec -toolexec -vettool --exec --toolexec --vettool",
    "cargo": "--config",
    **dict.fromkeys(_NODE, "--script-shell --node-options --shell --shell-emulator"),
    **dict.fromkeys(_COMPILERS, "-wrapper -B -fplugin -specs -fuse-ld -Xclang --gcc-toolchain"),
    **dict.fromkeys(("nm", "ar", "ranlib", "ld", "gold", "objdump"), "--plugin -plugin"),
    **dict.fromkeys(_EDITORS, "-c -S -s -u -W --cmd -es -Es -E"),
    **dict.fromkeys(
        ("emacs", "emacsclient"), "-e --eval -l --load -f --funcall --execute --script"
    ),
    **dict.fromkeys(("nano", "pico"), "-s --speller"),
    "ctags": "--options -L --_xcmd",
    "openssl": "-engine -provider -provider-path -config",
    "curl": "-K --config --engine",
    "tcpdump": "-z",
    "nmap": "--script",
    "helm": "--post-renderer",
    **dict.fromkeys(names("apt apt-get apt-cache aptitude"), "-o --option -c --config-file"),
    "dpkg": "--pre-invoke --post-invoke --status-logger",
    **dict.fromkeys(names("make gmake"), "--eval"),
    **dict.fromkeys(names("gawk awk"), "-l --load -E --exec"),
    "gdb": "-ex -x --eval-command --command",
    "rsync": "-e --rsh --rsync-path",
    **dict.fromkeys(names("scp sftp ssh"), "-S -o -F"),
    "mutt": "-e -F",
    "wget": "-e --execute --use-askpass --config",
    "java": "-javaagent -agentpath -agentlib -XX:OnError -XX:OnOutOfMemoryError",
    "gradle": "-I --init-script",
    "cmake": "-DCMAKE_C_COMPILER_LAUNCHER -DCMAKE_CXX_COMPILER_LAUNCHER",
    "xterm": "-e",
    **dict.fromkeys(names("zip zipcloak"), "-TT --unzip-command"),
}
"""The options of each command whose value is a program, a script of its own, or a file of such."""

_USUAL = names(
    """cat less more most head tail never always auto delta bat true false gzip pigz zstd xz bzip2
    lz4 ssh ccache sccache lld mold gold bfd default vim nano code"""
)
"""Programs that everybody puts there."""
_SHELL_ESCAPE = re.compile(r"\+.*!|\+:?(?:sil(?:ent)? )?!")


def starts_program(name: str, arguments: Arguments) -> bool:
    """Whether the options make the command start a program that is not usual there."""
    if name in _EDITORS | names("less more") and any(
        _SHELL_ESCAPE.match(one.text) for one in arguments
    ):
        return True
    options = names(RUNNING.get(name, ""))
    return bool(options) and any(
        not _is_usual(value) for value in _values(arguments, options, clusters=name != "go")
    )


def _values(arguments: Arguments, options: frozenset[str], *, clusters: bool) -> Arguments:
    """What follows any of the options, or is a part of their words."""
    values: list[Argument] = []
    for index, argument in enumerate(arguments):
        if argument.text == "--":
            break
        for option in options:
            value = _value(argument, option, arguments[index + 1 : index + 2], clusters=clusters)
            values.extend(value)
    return tuple(values)


def _value(argument: Argument, option: str, following: Arguments, *, clusters: bool) -> Arguments:
    written, equals, _ = argument.text.partition("=")
    if written == option or (option.startswith("--") and matches(written, option)):
        return (argument.after(len(written) + 1),) if equals else (following or (Argument("?"),))
    short = clusters and len(option) == len("-x") and not written.startswith("--")
    if short and argument.text.startswith(option):
        return (argument.after(len(option)),)
    return ()


def _is_usual(value: Argument) -> bool:
    words = value.text.split()
    return (
        value.known and (not words or words[0] in _USUAL) and not set(";&|`$()<>") & set(value.text)
    )
