"""Judges the effects of one command by the paths that it uses.

Deletes are judged for every directory in which the command may run, as after a failed `cd`; all
else only for the likeliest one.
"""

from __future__ import annotations

from keryx.tools.shell.judgement import paths, variables
from keryx.tools.shell.judgement.findings import Findings, Need
from keryx.tools.shell.judgement.flow import Bases
from keryx.tools.shell.judgement.paths import PathContext
from keryx.tools.shell.rules.actions import Action, Argument
from keryx.tools.shell.rules.clients.addresses import is_local


class EffectJudge:
    """Judges the effects of commands for one judgement."""

    def __init__(self, path_context: PathContext, findings: Findings) -> None:
        self._paths = path_context
        self.findings = findings

    def judge(self, action: Action, bases: Bases) -> None:
        """Judge an action itself, without the commands that it starts."""
        add = self.findings.add
        add(action.level, action.why, changes=action.changes)
        if action.directory is not None:
            bases = self._enter(action, action.directory, bases)
        else:
            self._check_directory(action, bases[0])
        self._judge_files(action, bases)
        for argument in action.programs:
            self.program(argument, bases)
        if any(argument.fetched for argument in action.code):
            add("high", "runs what comes over the network")
        if action.network:
            self._network(action)
        if action.signals and not self._paths.confined:
            add("high", "may end processes that it did not start")
        for argument in action.downloads:
            self.mark_download(argument, bases)

    def _judge_files(self, action: Action, bases: Bases) -> None:
        for argument in action.reads:
            if not (action.shallow and self._paths.resolve(argument, bases[0]) == "/"):
                self.read(argument, bases, deep=action.deep)
        for argument in action.writes:
            if action.empties:
                self._truncate(argument, bases)
            self.write(argument, bases)
        for argument in action.deletes:
            self._delete(argument, bases, "moves" if action.moves else "deletes")
        for argument in action.links:
            self._link(argument, bases)

    def mark_download(self, argument: Argument, bases: Bases) -> None:
        """Remember that a file now has data from the network."""
        if (path := self._paths.resolve(argument, bases[0])) is not None:
            self.findings.downloads.add(path)

    def _network(self, action: Action) -> None:
        is_confined = (
            self._paths.confined
        )  # a confined command sees only its session's part of this machine
        hosts = [host for host in action.hosts or ("",) if not (is_confined and is_local(host))]
        self.findings.needs.update(Need("network", host) for host in hosts)
        if action.level == "none":
            self.findings.add("low", "uses the network", changes=False)

    def _enter(self, action: Action, directory: Argument, bases: Bases) -> Bases:
        if action.changes:
            self.write(directory, bases)
        else:
            self.read(directory, bases)
        return tuple(self._paths.resolve(directory, base) for base in bases)

    def _check_directory(self, action: Action, base: str | None) -> None:
        """Judge the directory in which a command runs, which it may use without naming it."""
        if base is None or self._paths.is_inside(base) or action.enters is not None:
            return
        if action.changes:
            self.findings.needs.add(Need("write", base))
            self.findings.add("high", f"may change files outside of the workspace: {base}")
        elif (action.reads or action.level != "none") and not (
            self._paths.is_visible(base) or (action.shallow and base == "/")
        ):
            self.findings.needs.add(Need("read", base))
            self.findings.add("low", f"reads outside of the workspace: {base}", changes=False)

    def read(self, argument: Argument, bases: Bases, *, deep: bool = False) -> None:
        if argument.piped:
            return
        path = self._paths.resolve(argument, bases[0])
        if path is None:
            why = f"reads a path that only the shell knows: {argument.text}"
            self.findings.add("low", why, changes=False)
            return
        if host := paths.host_of(path):
            self.connect(host)
        elif self._paths.is_secret(path) and not paths.is_harmless_device(path):
            self.findings.needs.add(Need("read", path))
            self.findings.add("high", f"reads secrets or raw data: {path}", changes=False)
        elif self._paths.may_hold_secrets(path):
            why = f"reads a file that usually holds secrets: {path}"
            self.findings.add("low", why, changes=False)
        elif not (self._paths.is_inside(path) or self._paths.is_visible(path)):
            self._read_outside(path, deep=deep)

    def _read_outside(self, path: str, *, deep: bool) -> None:
        self.findings.needs.add(Need("read", path))
        if deep and self._paths.contains_home(path):
            self.findings.add("high", f"reads everything below {path}", changes=False)
        else:
            self.findings.add("low", f"reads outside of the workspace: {path}", changes=False)

    def connect(self, host: str) -> None:
        self.findings.needs.add(Need("network", host))
        self.findings.add("high", f"opens a raw connection to {host}")

    def write(self, argument: Argument, bases: Bases) -> None:
        if argument.piped:
            return
        path = self._paths.resolve(argument, bases[0])
        if path is None:
            self.findings.add(
                "high", f"writes to a path that only the shell knows: {argument.text}"
            )
        elif host := paths.host_of(path):
            self.connect(host)
        elif paths.is_harmless_device(path):
            return
        elif not self._paths.is_inside(path):
            self.findings.needs.add(Need("write", path))
            effect = (
                "writes to a device" if paths.is_device(path) else "writes outside of the workspace"
            )
            self.findings.add("high", f"{effect}: {path}")
        elif paths.is_git_internal(path):
            self.findings.add("high", f"changes git's own files: {path}")
        else:
            self.findings.add("low", f"changes {argument.text}")

    def _truncate(self, argument: Argument, bases: Bases) -> None:
        """Judge a file that loses its content."""
        path = self._paths.resolve(argument, bases[0])
        if argument.from_search:
            self.findings.add("high", "overwrites whatever another command finds")
        elif argument.pattern and path is not None and self._paths.matches_everything(path):
            self.findings.add("high", f"overwrites everything in the workspace: {argument.text}")

    def _delete(self, argument: Argument, bases: Bases, verb: str) -> None:
        if argument.from_search:
            self.findings.add("high", f"{verb} whatever another command finds")
            return
        if argument.pattern and paths.matches_parent(argument.text):
            why = f"{verb} by a pattern that also matches the folder above: {argument.text}"
            self.findings.add("high", why)
        for base in bases:
            self._delete_path(argument, self._paths.resolve(argument, base), verb)

    def _delete_path(self, argument: Argument, path: str | None, verb: str) -> None:
        path_context, add = self._paths, self.findings.add
        if path is None:
            add("high", f"{verb} a path that only the shell knows: {argument.text}")
        elif path_context.contains_workspace(path):
            add("high", f"{verb} the workspace itself, or more: {path}")
        elif not path_context.is_inside(path):
            self.findings.needs.add(Need("write", path))
            add("high", f"{verb} files outside of the workspace: {path}")
        elif paths.is_git_internal(path):
            add("high", f"{verb} git's own files: {path}")
        elif argument.pattern and path_context.matches_everything(path):
            add("high", f"{verb} everything in the workspace: {argument.text}")
        else:
            add("low", f"{verb} {argument.text}")

    def _link(self, argument: Argument, bases: Bases) -> None:
        path = self._paths.resolve(argument, bases[0])
        if path is None or not self._paths.is_inside(path):
            target = path or argument.text
            self.findings.add("high", f"makes a link that leads out of the workspace: {target}")

    def program(self, argument: Argument, bases: Bases) -> None:
        """Judge a file that is run as a program."""
        path = self._paths.resolve(argument, bases[0])
        if argument.fetched or path in self.findings.downloads:
            self.findings.add("high", "runs what comes over the network")
        elif path is None:
            why = f"runs a program that only the shell knows: {argument.text}"
            self.findings.add("high", why)
        else:
            self.findings.add("low", f"runs the program {argument.text}")
            self.read(argument, bases)

    def assign(self, name: str, value: Argument) -> str:
        """Judge the assignment of a variable; return its mark for the pattern of consent."""
        level, why = variables.risk_of(name, value)
        if level == "none" and not variables.is_command(name):
            return ""
        self.findings.add(level, why)
        return f"{name}= "
