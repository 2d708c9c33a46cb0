"""Commands on files and processes whose words need more than a line of a table."""

from __future__ import annotations

import re
from dataclasses import replace

from keryx.tools.shell.rules.actions import Action, Argument, Arguments, high, low, names, split
from keryx.tools.shell.rules.clients.addresses import hosts_in

HERE = Argument(".")


def cd(arguments: Arguments) -> Action:
    """Where the next commands run. Without an operand that is home."""
    operands = split(arguments).operands
    target = operands[0] if operands else Argument("~")
    if target.text == "-":
        target = Argument("-", known=False)
    return Action(enters=target, pattern="cd")


def popd(_arguments: Arguments) -> Action:
    """Back to a directory that this parser has not kept."""
    return Action(enters=Argument("popd", known=False), pattern="cd")


_LOCKS_OUT = re.compile(r"0*[0-3]?[0-7]{0,2}$|[ua]*-[rwx]*r|[ua]*=$")
_PRIVILEGE = re.compile(r"[ugoa]*[+=][rwxXt]*s|0?[2467][0-7]{3}$")


def chmod(arguments: Arguments) -> Action:
    """`chmod MODE files`."""
    parts = split(arguments, ("--reference",))
    # A mode such as `-w` looks like an option; then all operands are files.
    cut = 0 if any(name in ("-w", "-x", "-r") for name, _ in parts.options[:1]) else 1
    deed = Action(writes=parts.operands[cut:])
    if parts.operands and _PRIVILEGE.match(parts.operands[0].text):
        return replace(deed, level="high", why="lets a program run with its owner's rights")
    if parts.operands[:cut] and _LOCKS_OUT.match(parts.operands[0].text):
        return replace(deed, level="high", why="takes the owner's right to read away")
    return deed


def dd(arguments: Arguments) -> Action:
    """`dd if=FILE of=FILE`."""
    reads = tuple(one.after(3) for one in arguments if one.text.startswith("if="))
    writes = tuple(one.after(3) for one in arguments if one.text.startswith("of="))
    if any(not one.known and "=" not in one.text for one in arguments):
        return high("copies from and to what only the shell knows")
    return Action(reads=reads, writes=writes, empties=True)


_TAR_RUNS = (
    *("--to-command", "--checkpoint-action", "--rsh-command", "--rmt-command"),
    *("-F", "--info-script", "--new-volume-script"),
)
_COMPRESSING = ("-I", "--use-compress-program")
_COMPRESSORS = names("gzip pigz bzip2 pbzip2 lbzip2 xz pixz zstd pzstd lz4 lzma lzip brotli")


def tar(arguments: Arguments) -> Action:
    """`tar`: its first word may be a cluster without a dash."""
    if arguments and not arguments[0].text.startswith("-"):
        arguments = (replace(arguments[0], text="-" + arguments[0].text), *arguments[1:])
    takes = names("-f -C -I -T -X -b --file --directory --exclude --strip-components --transform")
    parts = split(arguments, takes | {*_TAR_RUNS, *_COMPRESSING})
    directory = parts.values(("-C", "--directory"))
    archive = tuple(one for one in parts.values(("-f", "--file")) if one.text != "-")
    if parts.has(*_TAR_RUNS) or any(
        one.text.partition(" ")[0] not in _COMPRESSORS for one in parts.values(_COMPRESSING)
    ):
        return high("starts a program that the options name")
    if parts.has("-x", "--extract", "--get"):
        deed = Action(reads=archive, writes=directory or (HERE,))
        if parts.has("-P", "--absolute-names", "--absolute-paths"):
            return replace(deed, level="high", why="unpacks to wherever the archive says")
        return deed
    if parts.has("-t", "--list"):
        return Action(reads=archive)
    reads = tuple(one.after(len("@")) if one.text[:1] == "@" else one for one in parts.operands)
    gone = reads if parts.has("--remove-files") else ()
    return Action(reads=(*reads, *directory), writes=archive, deletes=gone, deep=True)


def unzip(arguments: Arguments) -> Action:
    """`unzip archive -d directory`."""
    parts = split(arguments, ("-d", "-x", "-P"))
    reads = parts.operands[:1]
    if parts.has("-l", "-t", "-v", "-p", "-Z"):
        return Action(reads=reads)
    return Action(reads=reads, writes=parts.values(("-d",)) or (HERE,))


def zip_(arguments: Arguments) -> Action:
    """`zip archive files`."""
    parts = split(arguments, ("-x", "-i", "-P", "-b"))
    if parts.has("--unzip-command") or any(one.text.startswith("-TT") for one in arguments):
        return high("starts a program that the options name")
    deed = Action(reads=parts.operands[1:], writes=parts.operands[:1], deep=True)
    return replace(deed, deletes=parts.operands[1:]) if parts.has("-m") else deed


def xxd(arguments: Arguments) -> Action:
    """`xxd in out`."""
    operands = split(arguments, names("-c -g -l -s -o -n -seek -len -cols")).operands
    return Action(reads=operands[:1], writes=operands[1:2])


def uniq(arguments: Arguments) -> Action:
    """`uniq in out`."""
    operands = split(arguments, names("-f -s -w")).operands
    return Action(reads=operands[:1], writes=operands[1:2])


def rsync(arguments: Arguments) -> Action:
    """`rsync` copies here, or to and from another machine."""
    takes = names("-e -f --exclude --include --rsh --filter --files-from --exclude-from")
    parts = split(arguments, takes)
    operands = parts.operands
    if parts.has("-e", "--rsh", "--rsync-path") or any(":" in one.text for one in operands):
        deed = high("copies from or to another machine")
        hosts = hosts_in(operands)
        return replace(deed, network=True, hosts=hosts, reads=_local(operands))
    deed = Action(reads=operands[:-1], writes=operands[-1:], deep=True)
    if parts.has("--delete", "--remove-source-files") or any(
        name.startswith("--del") for name, _ in parts.options
    ):
        return replace(deed, level="high", why="deletes what the source does not have")
    return deed


def _local(operands: Arguments) -> Arguments:
    return tuple(one for one in operands if ":" not in one.text)


_EVERYBODY = re.compile(r"-?[01]$|-\d+$")


def kill(arguments: Arguments) -> Action:
    """`kill`: processes by their number; a confined command sees only those of its session."""
    texts = [one.text for one in arguments]
    if texts[:1] in (["-l"], ["-L"], ["-0"]):
        return Action()
    parts = split(arguments[:1], names("-s -n"))
    # The first word may be a signal, `-9` or `-s TERM`; a number with a dash after it is a group.
    signal = 0 if not parts.options else 2 if texts[0] in ("-s", "-n") else 1
    targets = [text for text in texts[signal:] if text != "--"]
    if not targets or any(_EVERYBODY.match(text) for text in targets):
        return high("ends processes that it did not start")
    return replace(low("ends a process"), signals=True)


def history(arguments: Arguments) -> Action:
    """`history` shows; with options it deletes or writes."""
    if split(arguments).options:
        return high("changes the history of commands")
    return Action("low", "shows the history of commands")


def hash_(arguments: Arguments) -> Action:
    """`hash -p` gives a command another meaning."""
    if split(arguments, ("-p",)).has("-p"):
        return high("gives a command another meaning")
    return Action()


def printf(arguments: Arguments) -> Action:
    """`printf -v NAME` sets a variable."""
    parts = split(arguments, ("-v",), until_operand=True)
    return Action(
        assigns=tuple((one.text, Argument("", known=False)) for one in parts.values(("-v",)))
    )


def read(arguments: Arguments) -> Action:
    """`read` and `mapfile` set the variables that they name."""
    parts = split(arguments, names("-p -d -n -N -t -u -i -a -c -C -O"))
    return Action(
        texts=parts.values(("-C",)),
        assigns=tuple((one.text, Argument("", known=False)) for one in parts.operands),
    )


def crontab(arguments: Arguments) -> Action:
    """`crontab -l` shows; all else changes what runs later."""
    if [one.text for one in arguments] == ["-l"]:
        return Action("low", "shows what runs at later times")
    return high("makes commands run at a later time")


def date(arguments: Arguments) -> Action:
    """`date` shows the time, unless it is told to set it."""
    parts = split(arguments, names("-d -s -r -f --date --set --reference"))
    if parts.has("-s", "--set"):
        return high("sets the clock of the machine")
    return Action(reads=parts.values(("-r", "-f", "--reference")))


def hostname(arguments: Arguments) -> Action:
    """`hostname NAME` renames the machine."""
    return high("renames the machine") if split(arguments).operands else Action()


def yq(arguments: Arguments) -> Action:
    """`yq` reads, or with `-i` changes, the files after its expression."""
    parts = split(arguments, names("-o -p --output-format --input-format"))
    files = parts.operands[1:]
    if parts.has("-i", "--inplace", "--in-place"):
        return Action(writes=files)
    return Action(reads=files)
