"""The warden and its keepers: the small processes that all children of one host run under.

Run as a plain script (`python -I -S main.py HOST_PID`, the host's socket as standard
input), so it imports nothing but the standard library and runs on Python 3.8 and later.

The warden forks a keeper per confinement policy; a keeper starts that policy's children and
talks to the host directly. Both are single-threaded subreapers that wait for three things:
the host's socket, the process they depend on, and their children. When the host or the
warden is gone, they kill everything below them and leave only once `waitpid` says that
nothing is left. They know nothing of scopes, graces or output: the host decides, and gives
file descriptors.

Which processes belong to an order: its main process and all below it; and orphans, which
the kernel hands to the keeper, by the tag that they inherited. The tag is the soft
RLIMIT_LOCKS: without effect since Linux 2.4, yet kept per process over fork and exec. Behind
a filter of system calls nobody but the keeper can change it. Without one, a child that does is
no longer known as part of its order, and is killed once the last order of its keeper has
ended, or when keeper, warden or host end.

A keeper with a policy confines itself (`walls`) before it serves, and then tells the host how
far. Where it can it is the first process of a PID namespace, so that the kernel itself kills
whatever it leaves behind. The numbers of processes that it tells are those inside.

Without /proc and subreapers (macOS) an order is its process group, so a child that makes
its own session outlives the order, and nothing catches what a killed keeper leaves behind.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

READ_SIZE = 1 << 16
STUBBORN = 3  # looks after which what passes a limit and does not die is killed with all its kin
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def neighbour(name: str) -> ModuleType:
    """A module beside this file. -I keeps our folder off the path, and so it shall stay."""
    path = f"{__file__.rpartition('/')[0] or '.'}/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018 (one fact)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def confinement():  # noqa: ANN201 (a module is no type; the checker finds it)
    """What confinement is made of; loaded by the first policy, as a package of its own."""
    if TYPE_CHECKING:
        from .confinement import confine  # noqa: PLC0415 (same)
    else:
        if "confinement" not in sys.modules:
            folder = f"{__file__.rpartition('/')[0] or '.'}/confinement"
            spec = importlib.util.spec_from_file_location(
                "confinement", f"{folder}/__init__.py", submodule_search_locations=[folder]
            )
            sys.modules["confinement"] = importlib.util.module_from_spec(spec)
        confine = importlib.import_module("confinement.confine")
    return confine


if TYPE_CHECKING:
    from . import channel, launch, proctree
else:
    channel = neighbour("channel")
    launch = neighbour("launch")
    proctree = neighbour("proctree")

LINUX = proctree.LINUX

# -- what warden and keeper have in common


class Order:
    """One child that the host asked for."""

    __slots__ = ("cause", "id", "pid", "status", "tag")

    def __init__(self, order_id: int, pid: int, tag: int) -> None:
        self.id = order_id
        self.pid = pid
        self.tag = tag
        self.status: int | None = None
        self.cause = ""  # the limit that it passed, in words


class Post:
    """Waits for orders, for the death of children, and for the death of those it depends on."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        self.host = channel.Channel(host)
        self.lifeline = lifeline
        self.mains: dict[int, Order] = {}  # children that were ordered and not yet reaped
        self.condemned: set[int] = set()  # children that were killed and not yet reaped
        self.next_look: float | None = None
        self.is_init = False  # of a PID namespace
        self.alarm, self.bell = socket.socketpair()
        self.bell.setblocking(False)
        signal.set_wakeup_fd(self.bell.fileno(), warn_on_full_buffer=False)
        # Without a handler nothing would be written to the wakeup descriptor.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        if LINUX:
            proctree.become_subreaper()

    def obey(self, order: Any) -> None:
        raise NotImplementedError

    def buried(self, pid: int, status: int) -> None:
        """A child was reaped."""
        raise NotImplementedError

    def settle(self, *, childless: bool) -> None:
        """Act on what the last deaths mean."""
        raise NotImplementedError

    def look(self) -> None:
        """See what nobody reports, and say when to look again."""
        raise NotImplementedError

    def bereft(self) -> None:
        """What the lifeline stands for is gone."""

    def patience(self) -> float | None:
        """Milliseconds until the next look; None if there is none."""
        if self.next_look is None:
            return None
        return max(0.0, (self.next_look - time.monotonic()) * 1000)

    def run(self) -> None:
        """Serve until the host, or what the lifeline stands for, is gone."""
        poll = select.poll()
        host, alarm = self.host.sock.fileno(), self.alarm.fileno()
        for fd in (host, alarm, self.lifeline):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        sending = False
        while True:
            for fd, events in poll.poll(self.patience()):
                if fd == alarm:
                    self.alarm.recv(READ_SIZE)  # does not block: it is readable
                    self.reap()
                elif fd == self.lifeline:
                    self.bereft()
                    return
                elif not self.listen(events):
                    return
            if self.patience() == 0:
                self.look()
            if bool(self.host.unsent) != sending:
                sending = not sending
                poll.modify(host, select.POLLIN | (select.POLLOUT if sending else 0))

    def listen(self, events: int) -> bool:
        """Do what the host says; False if it is gone."""
        if events & select.POLLOUT:
            self.host.flush()
        try:
            orders = self.host.receive()
        except EOFError:
            return False
        for order in orders:
            self.obey(order)
        return True

    def reap(self) -> None:
        childless = False
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                childless = True
                break
            if pid == 0:
                break
            self.condemned.discard(pid)
            self.buried(pid, status)
        self.settle(childless=childless)

    def condemn(self, pids: Iterable[int]) -> bool:
        """Kill children of ours with all below them; whether there is a death to wait for.

        Once is enough: what such a child leaves behind comes to us when it dies, with a
        signal. One that may not be killed (a program that runs as another user) is let go.
        """
        waiting = False
        for pid in pids:
            if pid in self.condemned:
                waiting = True
            elif proctree.strike_tree(pid, signal.SIGKILL):
                self.condemned.add(pid)
                waiting = True
        return waiting

    def serve(self) -> NoReturn:
        try:
            self.run()
        except Exception:  # noqa: BLE001 (whatever broke: the host is told, and nothing below may survive)
            self.host.send({"op": "broken", "error": traceback.format_exc()})
        finally:
            proctree.sweep(self.mains, everyone=self.is_init)
            os._exit(0)


# -- the keeper


class Keeper(Post):
    """Starts the children of one policy and accounts for all that they leave behind."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        super().__init__(host, lifeline)
        self.limits: Any = {}
        self.passed = 0  # looks in a row that found a limit passed
        self.orders: dict[int, Order] = {}
        self.ending: dict[int, Order] = {}  # killed, or without their main process
        # A random start, so that the tags of a host that runs below another differ.
        self.tags = itertools.count(int.from_bytes(os.urandom(5), "big") << 20)
        self.tag_self = proctree.tag_self
        self.defaults = [
            number
            for number in signal.valid_signals()
            if signal.getsignal(number) not in (signal.SIG_DFL, None)
        ]

    def bereft(self) -> None:
        # The host may hear of this end before it hears of the warden's, and must not turn to it.
        self.host.send({"op": "orphaned"})

    def confine(self, policy: Any) -> None:
        """Put up the walls and tell the host how far they reach; raises if they do not stand."""
        if not LINUX:
            gaps = ["can do all that the user can: there are no walls for this system"]
            tmp, uploads = policy["tmp"] or "/tmp", policy["uploads"] or ""  # noqa: S108 (what children get to see)
            found = {"level": "none", "gaps": gaps, "tmp": tmp, "uploads": uploads}
            stand = None
        else:
            stand = confinement().find_walls(policy)
            found = confinement().report(policy, stand)._asdict()
        if policy["required"] and found["level"] != "full":
            raise launch.RefusedError(
                "full confinement is required and not possible here; a child "
                + ", and ".join(found["gaps"])
            )
        if stand is not None:
            confinement().confine(policy, stand)
            self.is_init = stand.pids
            if stand.seccomp:
                self.tag_self = confinement().seccomp.set_tag
            self.limits = policy["limits"]
        self.host.send({"op": "confined", **found})

    def obey(self, order: Any) -> None:
        if order["op"] == "spawn":
            self.spawn(order)
        elif order["id"] in self.orders:
            self.hit(self.orders[order["id"]], order["signal"])

    def spawn(self, wish: Any) -> None:
        fds = self.host.take_fds(len(wish["fds"]))
        tag = next(self.tags)
        try:
            self.tag_self(tag)
            pid = launch.launch(wish, fds, self.defaults)
        except launch.RefusedError as error:
            # Names of files may hold bytes that are no text; the host reads strict UTF-8.
            text = str(error).encode("utf-8", "replace").decode()
            self.host.send({"op": "refused", "id": wish["id"], "error": text})
            return
        finally:
            for fd in fds:
                os.close(fd)
        if self.limits:
            confinement().limits.bound_child(pid, self.limits)
            if self.next_look is None:
                self.next_look = time.monotonic() + confinement().watch.INTERVAL / 1000
        order = Order(wish["id"], pid, tag)
        self.orders[order.id] = self.mains[pid] = order
        self.host.send({"op": "started", "id": order.id, "pid": pid})

    def hit(self, order: Order, number: int) -> None:
        if number == signal.SIGKILL:
            self.ending[order.id] = order
            self.settle(childless=False)
        elif not LINUX:
            proctree.strike_group(order.pid, number)
        else:
            orphans = self.orphans()
            if order.status is None:
                proctree.strike_tree(order.pid, number)
            for pid in orphans:
                if self.belongs(pid, order):
                    proctree.strike_tree(pid, number)

    def buried(self, pid: int, status: int) -> None:
        order = self.mains.pop(pid, None)
        if order is not None:
            order.status = status
            if self.limits and os.WIFSIGNALED(status) and not order.cause:
                order.cause = confinement().watch.cause_of(os.WTERMSIG(status), self.limits)
            self.ending[order.id] = order
            if not LINUX:
                proctree.strike_group(pid, signal.SIGKILL)

    def settle(self, *, childless: bool) -> None:
        """Kill what outlives its order, and report the orders of which nothing is left."""
        if not self.ending:
            return
        orphans = [] if childless else self.orphans()
        for order in list(self.ending.values()):
            doomed = [pid for pid in orphans if self.belongs(pid, order)]
            if order.status is None:
                if LINUX:
                    doomed.append(order.pid)
                else:
                    proctree.strike_group(order.pid, signal.SIGKILL)
            if not self.condemn(doomed) and order.status is not None:
                self.report(order, order.status)

    def orphans(self) -> list[int]:
        """Children of ours that we did not start."""
        if not LINUX:
            return []
        return [pid for pid in proctree.own_children() if pid not in self.mains]

    def belongs(self, orphan: int, order: Order) -> bool:
        # Of a single order everything is, also what changed its tag.
        return len(self.orders) == 1 or proctree.tag_of(orphan) == order.tag

    def look(self) -> None:
        """Kill the order that passed a limit; all orders, if that does not help.

        The second is for bombs: in a PID namespace one signal reaches all at once, and none of
        them can get away by forking meanwhile.
        """
        watch = confinement().watch
        self.next_look = time.monotonic() + watch.INTERVAL / 1000 if self.orders else None
        pids = watch.everyone_else() if self.is_init else proctree.below(os.getpid())
        mains = {order.pid: order.id for order in self.mains.values()}
        excess = watch.find_excess(self.limits, pids, mains, self.order_of_orphan)
        self.passed = 0 if excess is None else self.passed + 1
        if excess is None:
            return
        guilty = self.orders.get(excess.order)
        if self.passed > STUBBORN and self.is_init:
            proctree.strike_everyone()
            for order in self.orders.values():
                order.cause = order.cause or f"it ran beside another of which {excess.cause}"
        elif guilty is not None:
            guilty.cause = guilty.cause or excess.cause
            proctree.strike_tagged(guilty.tag)
            self.hit(guilty, signal.SIGKILL)
        else:
            for pid in excess.pids:
                proctree.strike(pid, signal.SIGKILL)

    def order_of_orphan(self, pid: int) -> int:
        for order in self.orders.values():
            if self.belongs(pid, order):
                return order.id
        return 0

    def report(self, order: Order, status: int) -> None:
        del self.orders[order.id], self.ending[order.id]
        killed = os.WIFSIGNALED(status)
        self.host.send(
            {
                "op": "exit",
                "id": order.id,
                "code": None if killed else os.WEXITSTATUS(status),
                "signal": os.WTERMSIG(status) if killed else None,
                "cause": order.cause,
            }
        )


# -- the warden


class Warden(Post):
    """Opens keepers, and kills what a dead keeper leaves behind."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        super().__init__(host, lifeline)
        self.keepers: dict[int, int] = {}  # by pid: a pipe whose closing says that we died

    def obey(self, order: Any) -> None:
        sock = socket.socket(fileno=self.host.take_fds(1)[0])
        try:
            self.open(sock, order["policy"])
        except (OSError, launch.RefusedError) as error:
            channel.Channel(sock).send({"op": "unopened", "error": launch.explain(error)})
        finally:
            sock.close()

    def open(self, sock: socket.socket, policy: Any) -> None:
        try:
            init = policy is not None and LINUX and confinement().find_walls(policy).pids
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise launch.RefusedError(f"no confinement can be made of this: {error!r}") from error
        lifeline, ours = os.pipe()
        try:
            pid = confinement().namespaces.fork_as_init() if init else os.fork()  # noqa: TID251 (this is the warden; it has one thread)
            if pid == 0:
                self.become_keeper(sock, lifeline, ours, policy)
            self.keepers[pid] = ours
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(lifeline)

    def become_keeper(self, sock: socket.socket, lifeline: int, ours: int, policy: Any) -> NoReturn:
        try:
            # Copies of these would keep others from seeing that the warden or the host died.
            for held in (self.host.sock, self.alarm, self.bell):
                held.close()
            for fd in (self.lifeline, ours, *self.keepers.values()):
                if fd >= 0:
                    os.close(fd)
            keeper = Keeper(sock, lifeline)
            try:
                if policy is not None:
                    keeper.confine(policy)
            except Exception as error:  # noqa: BLE001 (whatever it was: no wall, no service)
                keeper.host.send({"op": "unopened", "error": f"no confinement: {error}"})
                os._exit(1)
            keeper.serve()
        finally:
            os._exit(1)

    def buried(self, pid: int, status: int) -> None:
        del status
        ours = self.keepers.pop(pid, None)
        if ours is not None:
            os.close(ours)

    def settle(self, *, childless: bool) -> None:
        if LINUX and not childless:
            self.condemn(pid for pid in proctree.own_children() if pid not in self.keepers)


def shed_fds(kept: int) -> None:
    """Close what the host inherited and did not mean to pass on; children would get it too."""
    with os.scandir("/dev/fd") as entries:
        fds = [int(entry.name) for entry in entries]
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for fd in (*fds, null):
        if fd > 2 and fd != kept:  # noqa: PLR2004 (the three standard ones)
            try:
                os.close(fd)
            except OSError:
                continue  # the one that listed them


def main() -> NoReturn:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    host = socket.socket(fileno=os.dup(0))
    shed_fds(host.fileno())
    os.chdir("/")  # noqa: TID251 (the warden's own process; it holds no folder)
    # A fork of the host may hold the socket open, so its death is also watched directly.
    lifeline, parent = -1, int(sys.argv[1])
    if sys.platform == "linux" and proctree.PIDFD and os.getppid() == parent:
        lifeline = os.pidfd_open(parent)
    Warden(host, lifeline).serve()


if __name__ == "__main__":
    main()
