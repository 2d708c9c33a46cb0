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
RLIMIT_LOCKS: without effect since Linux 2.4, yet kept per process over fork and exec. A
child that changes its tag on purpose is no longer known as part of its order. It is still
killed: once the last order of its keeper has ended, or when keeper, warden or host end.

Without /proc and subreapers (macOS) an order is its process group, so a child that makes
its own session outlives the order, and nothing catches what a killed keeper leaves behind.
"""

from __future__ import annotations

import array
import importlib.util
import itertools
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn

HEADER = 4  # bytes of a frame's length, big-endian
READ_SIZE = 1 << 16
MAX_FDS = 8  # an order brings at most three
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)

encode = json.JSONEncoder(separators=(",", ":")).encode


def neighbour(name: str) -> ModuleType:
    """A module beside this file. -I keeps our folder off the path, and so it shall stay."""
    path = f"{__file__.rpartition('/')[0] or '.'}/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018 (one fact)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from . import launch, proctree
else:
    launch = neighbour("launch")
    proctree = neighbour("proctree")

LINUX = proctree.LINUX

# -- frames


class Channel:
    """Frames of JSON, with file descriptors, over a stream socket that may close at any time."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.fds: list[int] = []
        self.unread = bytearray()
        self.unsent = bytearray()

    def receive(self) -> list[Any]:
        """The orders of one read; raises EOFError when the other side is gone."""
        try:
            data, ancillary, flags, _ = self.sock.recvmsg(
                READ_SIZE,
                socket.CMSG_SPACE(MAX_FDS * array.array("i").itemsize),
                getattr(socket, "MSG_CMSG_CLOEXEC", 0),
            )
        except BlockingIOError:
            return []
        except OSError as error:
            raise EOFError from error
        for _, _, raw in ancillary:
            fds = array.array("i")
            fds.frombytes(raw[: len(raw) - len(raw) % fds.itemsize])
            self.fds += fds
            if not LINUX:
                for fd in fds:
                    os.set_inheritable(fd, False)
        if flags & socket.MSG_CTRUNC:
            raise RuntimeError("file descriptors were lost on the way: too many are open")
        if not data:
            raise EOFError
        self.unread += data
        return self.split()

    def split(self) -> list[Any]:
        orders: list[Any] = []
        while len(self.unread) >= HEADER:
            end = HEADER + int.from_bytes(self.unread[:HEADER], "big")
            if end > len(self.unread):
                break
            orders.append(json.loads(self.unread[HEADER:end]))
            del self.unread[:end]
        return orders

    def take_fds(self, count: int) -> list[int]:
        """The descriptors that came with a frame; the socket keeps both in order."""
        taken, self.fds = self.fds[:count], self.fds[count:]
        return taken

    def send(self, report: dict[str, object]) -> None:
        body = encode(report).encode()
        self.unsent += len(body).to_bytes(HEADER, "big") + body
        self.flush()

    def flush(self) -> None:
        try:
            del self.unsent[: self.sock.send(self.unsent)]
        except BlockingIOError:
            return
        except OSError:
            self.unsent.clear()  # nobody reads any more; the next read says so


# -- what warden and keeper have in common


class Order:
    """One child that the host asked for."""

    __slots__ = ("id", "pid", "status", "tag")

    def __init__(self, order_id: int, pid: int, tag: int) -> None:
        self.id = order_id
        self.pid = pid
        self.tag = tag
        self.status: int | None = None


class Post:
    """Waits for orders, for the death of children, and for the death of those it depends on."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        self.host = Channel(host)
        self.lifeline = lifeline
        self.mains: dict[int, Order] = {}  # children that were ordered and not yet reaped
        self.condemned: set[int] = set()  # children that were killed and not yet reaped
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

    def run(self) -> None:
        """Serve until the host, or what the lifeline stands for, is gone."""
        poll = select.poll()
        host, alarm = self.host.sock.fileno(), self.alarm.fileno()
        for fd in (host, alarm, self.lifeline):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        sending = False
        while True:
            for fd, events in poll.poll():
                if fd == alarm:
                    self.alarm.recv(READ_SIZE)  # does not block: it is readable
                    self.reap()
                elif fd != host or not self.listen(events):
                    return
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
            proctree.sweep(self.mains)
            os._exit(0)


# -- the keeper


class Keeper(Post):
    """Starts the children of one policy and accounts for all that they leave behind."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        super().__init__(host, lifeline)
        self.orders: dict[int, Order] = {}
        self.ending: dict[int, Order] = {}  # killed, or without their main process
        # A random start, so that the tags of a host that runs below another differ.
        self.tags = itertools.count(int.from_bytes(os.urandom(5), "big") << 20)
        self.defaults = [
            number
            for number in signal.valid_signals()
            if signal.getsignal(number) not in (signal.SIG_DFL, None)
        ]

    def obey(self, order: Any) -> None:
        if order["op"] == "spawn":
            self.spawn(order)
        elif order["id"] in self.orders:
            self.hit(self.orders[order["id"]], order["signal"])

    def spawn(self, wish: Any) -> None:
        fds = self.host.take_fds(len(wish["fds"]))
        tag = next(self.tags)
        try:
            proctree.tag_self(tag)
            pid = launch.launch(wish, fds, self.defaults)
        except launch.RefusedError as error:
            # Names of files may hold bytes that are no text; the host reads strict UTF-8.
            text = str(error).encode("utf-8", "replace").decode()
            self.host.send({"op": "refused", "id": wish["id"], "error": text})
            return
        finally:
            for fd in fds:
                os.close(fd)
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

    def report(self, order: Order, status: int) -> None:
        del self.orders[order.id], self.ending[order.id]
        killed = os.WIFSIGNALED(status)
        self.host.send(
            {
                "op": "exit",
                "id": order.id,
                "code": None if killed else os.WEXITSTATUS(status),
                "signal": os.WTERMSIG(status) if killed else None,
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
            Channel(sock).send({"op": "unopened", "error": launch.explain(error)})
        finally:
            sock.close()

    def open(self, sock: socket.socket, policy: object) -> None:
        if policy is not None:
            raise launch.RefusedError("this version of Keryx knows no confinement; leave it out")
        lifeline, ours = os.pipe()
        try:
            pid = os.fork()  # noqa: TID251 (this is the warden; it has one thread)
            if pid == 0:
                self.become_keeper(sock, lifeline, ours)
            self.keepers[pid] = ours
        except OSError:
            os.close(ours)
            raise
        finally:
            os.close(lifeline)

    def become_keeper(self, sock: socket.socket, lifeline: int, ours: int) -> NoReturn:
        try:
            # Copies of these would keep others from seeing that the warden or the host died.
            for held in (self.host.sock, self.alarm, self.bell):
                held.close()
            for fd in (self.lifeline, ours, *self.keepers.values()):
                if fd >= 0:
                    os.close(fd)
            Keeper(sock, lifeline).serve()
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
