"""Weighs what one command does by where it does it.

Deletes are weighed for every directory that the command could be running in, as after a `cd`
that failed; all else only for the one that was meant.
"""

from __future__ import annotations

from keryx.tools.shell.judgement import paths, variables
from keryx.tools.shell.judgement.findings import Findings, Need
from keryx.tools.shell.judgement.flow import Bases
from keryx.tools.shell.judgement.paths import Ground
from keryx.tools.shell.rules.actions import Action, Argument
from keryx.tools.shell.rules.clients.addresses import is_local


class Scale:
    """Weighs for one judgement."""

    def __init__(self, ground: Ground, findings: Findings) -> None:
        self._ground = ground
        self.findings = findings

    def weigh(self, deed: Action, bases: Bases) -> None:
        """All that the deed says of itself; what it starts is not weighed here."""
        add = self.findings.add
        add(deed.level, deed.why, changes=deed.changes)
        if deed.directory is not None:
            bases = self._entered(deed, deed.directory, bases)
        else:
            self._outside(deed, bases[0])
        self._touch(deed, bases)
        for argument in deed.programs:
            self.program(argument, bases)
        if any(argument.fetched for argument in deed.code):
            add("high", "runs what comes over the network")
        if deed.network:
            self._network(deed)
        if deed.signals and not self._ground.walled:
            add("high", "may end processes that it did not start")
        for argument in deed.downloads:
            self.keep(argument, bases)

    def _touch(self, deed: Action, bases: Bases) -> None:
        for argument in deed.reads:
            if not (deed.shallow and self._ground.resolve(argument, bases[0]) == "/"):
                self.read(argument, bases, deep=deed.deep)
        for argument in deed.writes:
            if deed.empties:
                self._empty(argument, bases)
            self.write(argument, bases)
        for argument in deed.deletes:
            self._delete(argument, bases, "moves" if deed.moves else "deletes")
        for argument in deed.links:
            self._link(argument, bases)

    def keep(self, argument: Argument, bases: Bases) -> None:
        """A file now holds what came over the network."""
        if (path := self._ground.resolve(argument, bases[0])) is not None:
            self.findings.downloads.add(path)

    def _network(self, deed: Action) -> None:
        apart = self._ground.walled  # behind walls, this machine is the session's own
        hosts = [host for host in deed.hosts or ("",) if not (apart and is_local(host))]
        self.findings.needs.update(Need("network", host) for host in hosts)
        if deed.level == "none":
            self.findings.add("low", "uses the network", changes=False)

    def _entered(self, deed: Action, directory: Argument, bases: Bases) -> Bases:
        if deed.changes:
            self.write(directory, bases)
        else:
            self.read(directory, bases)
        return tuple(self._ground.resolve(directory, base) for base in bases)

    def _outside(self, deed: Action, base: str | None) -> None:
        """A command may well use the directory that it runs in without naming it."""
        if base is None or self._ground.inside(base) or deed.enters is not None:
            return
        if deed.changes:
            self.findings.needs.add(Need("write", base))
            self.findings.add("high", f"may change files outside of the workspace: {base}")
        elif (deed.reads or deed.level != "none") and not (
            self._ground.is_shown(base) or (deed.shallow and base == "/")
        ):
            self.findings.needs.add(Need("read", base))
            self.findings.add("low", f"reads outside of the workspace: {base}", changes=False)

    def read(self, argument: Argument, bases: Bases, *, deep: bool = False) -> None:
        if argument.piped:
            return
        path = self._ground.resolve(argument, bases[0])
        if path is None:
            why = f"reads a path that only the shell knows: {argument.text}"
            self.findings.add("low", why, changes=False)
            return
        if host := paths.host_of(path):
            self.connect(host)
        elif self._ground.is_secret(path) and not paths.is_harmless_device(path):
            self.findings.needs.add(Need("read", path))
            self.findings.add("high", f"reads secrets or raw data: {path}", changes=False)
        elif self._ground.may_hold_secrets(path):
            why = f"reads a file that usually holds secrets: {path}"
            self.findings.add("low", why, changes=False)
        elif not (self._ground.inside(path) or self._ground.is_shown(path)):
            self._read_outside(path, deep=deep)

    def _read_outside(self, path: str, *, deep: bool) -> None:
        self.findings.needs.add(Need("read", path))
        if deep and self._ground.holds_home(path):
            self.findings.add("high", f"reads everything below {path}", changes=False)
        else:
            self.findings.add("low", f"reads outside of the workspace: {path}", changes=False)

    def connect(self, host: str) -> None:
        self.findings.needs.add(Need("network", host))
        self.findings.add("high", f"opens a raw connection to {host}")

    def write(self, argument: Argument, bases: Bases) -> None:
        if argument.piped:
            return
        path = self._ground.resolve(argument, bases[0])
        if path is None:
            self.findings.add(
                "high", f"writes to a path that only the shell knows: {argument.text}"
            )
        elif host := paths.host_of(path):
            self.connect(host)
        elif paths.is_harmless_device(path):
            return
        elif not self._ground.inside(path):
            self.findings.needs.add(Need("write", path))
            what = (
                "writes to a device" if paths.is_device(path) else "writes outside of the workspace"
            )
            self.findings.add("high", f"{what}: {path}")
        elif paths.is_git_internal(path):
            self.findings.add("high", f"changes git's own files: {path}")
        else:
            self.findings.add("low", f"changes {argument.text}")

    def _empty(self, argument: Argument, bases: Bases) -> None:
        """A file loses what it holds."""
        path = self._ground.resolve(argument, bases[0])
        if argument.found:
            self.findings.add("high", "overwrites whatever another command finds")
        elif argument.pattern and path is not None and self._ground.is_swept_by(path):
            self.findings.add("high", f"overwrites everything in the workspace: {argument.text}")

    def _delete(self, argument: Argument, bases: Bases, verb: str) -> None:
        if argument.found:
            self.findings.add("high", f"{verb} whatever another command finds")
            return
        if argument.pattern and paths.matches_parent(argument.text):
            why = f"{verb} by a pattern that also matches the folder above: {argument.text}"
            self.findings.add("high", why)
        for base in bases:
            self._delete_path(argument, self._ground.resolve(argument, base), verb)

    def _delete_path(self, argument: Argument, path: str | None, verb: str) -> None:
        ground, add = self._ground, self.findings.add
        if path is None:
            add("high", f"{verb} a path that only the shell knows: {argument.text}")
        elif ground.holds_workspace(path):
            add("high", f"{verb} the workspace itself, or more: {path}")
        elif not ground.inside(path):
            self.findings.needs.add(Need("write", path))
            add("high", f"{verb} files outside of the workspace: {path}")
        elif paths.is_git_internal(path):
            add("high", f"{verb} git's own files: {path}")
        elif argument.pattern and ground.is_swept_by(path):
            add("high", f"{verb} everything in the workspace: {argument.text}")
        else:
            add("low", f"{verb} {argument.text}")

    def _link(self, argument: Argument, bases: Bases) -> None:
        path = self._ground.resolve(argument, bases[0])
        if path is None or not self._ground.inside(path):
            shown = path or argument.text
            self.findings.add("high", f"makes a link that leads out of the workspace: {shown}")

    def program(self, argument: Argument, bases: Bases) -> None:
        """A file that is run."""
        path = self._ground.resolve(argument, bases[0])
        if argument.fetched or path in self.findings.downloads:
            self.findings.add("high", "runs what comes over the network")
        elif path is None:
            why = f"runs a program that only the shell knows: {argument.text}"
            self.findings.add("high", why)
        else:
            self.findings.add("low", f"runs the program {argument.text}")
            self.read(argument, bases)

    def assign(self, name: str, value: Argument) -> str:
        """What a variable may do to the commands that follow; the mark it leaves on patterns."""
        level, why = variables.weight(name, value)
        if level == "none" and not variables.is_command(name):
            return ""
        self.findings.add(level, why)
        return f"{name}= "
