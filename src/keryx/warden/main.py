"""The warden and its keepers: the small processes that all children of one host run under.

Run as a plain script (`python -I -S main.py HOST_PID`, the host's socket as standard
input), so it imports nothing but the standard library and runs on Python 3.8 and later.

The warden forks a keeper per confinement policy; a keeper starts that policy's children and
talks to the host directly. Both are single-threaded subreapers that wait for three things:
the host's socket, the process they depend on, and their children. When the host or the
warden has died, they kill everything below them and exit only once `waitpid` says that
no child is left. They know nothing of scopes, graces or output: the host decides, and passes
file descriptors.

These processes belong to an order: its main process, all processes below that one, and
orphans (the kernel makes them children of the keeper) that carry the order's tag. The tag
is the soft RLIMIT_LOCKS: it has no effect since Linux 2.4, yet fork and exec keep it. Behind
a seccomp filter only the keeper can change it. Without one, a child that changes its tag
no longer counts as part of its order; it is killed once the last order of its keeper has
ended, or when keeper, warden or host end.

A keeper with a policy confines itself before it serves, and then reports to the host how far.
Where possible it is the first process of a PID namespace, so that the kernel itself kills
whatever it leaves behind. The pids that it reports are those inside the namespace.

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
CHECKS_BEFORE_KILLING_ALL = 3  # checks in a row over a limit, after which all orders are killed
IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def load_sibling(name: str) -> ModuleType:
    """Load a module beside this file, without adding our folder to the import path."""
    path = f"{__file__.rpartition('/')[0] or '.'}/{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None  # noqa: PT018 (one fact)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def confinement():  # noqa: ANN201 (a module is no type; the checker finds it)
    """Return the module `confinement.confine`; the first policy loads the package."""
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
    channel = load_sibling("channel")
    launch = load_sibling("launch")
    proctree = load_sibling("proctree")

LINUX = proctree.LINUX

# -- what warden and keeper share


class Order:
    """One child that the host ordered."""

    __slots__ = ("cause", "id", "pid", "status", "tag")

    def __init__(self, order_id: int, pid: int, tag: int) -> None:
        self.id = order_id
        self.pid = pid
        self.tag = tag
        self.status: int | None = None
        self.cause = ""  # the limit that it passed, in words


class Supervisor:
    """Waits for orders, for the death of children, and for the death of the process it needs."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        self.host = channel.Channel(host)
        self.lifeline = lifeline
        self.main_processes: dict[int, Order] = {}  # ordered children that are not yet reaped
        self.killed_pids: set[int] = set()  # killed children that are not yet reaped
        self.next_check: float | None = None
        self.is_init = False  # of a PID namespace
        self.wakeup_reader, self.wakeup_writer = socket.socketpair()
        self.wakeup_writer.setblocking(False)
        signal.set_wakeup_fd(self.wakeup_writer.fileno(), warn_on_full_buffer=False)
        # Without a handler nothing would be written to the wakeup descriptor.
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        if LINUX:
            proctree.become_subreaper()

    def handle_order(self, order: Any) -> None:
        raise NotImplementedError

    def child_reaped(self, pid: int, status: int) -> None:
        """Record that a child was reaped."""
        raise NotImplementedError

    def settle(self, *, childless: bool) -> None:
        """Kill what the reaped children left behind, and report what has ended."""
        raise NotImplementedError

    def check_limits(self) -> None:
        """Check the limits of what runs, and set the time of the next check."""
        raise NotImplementedError

    def lifeline_lost(self) -> None:
        """Act on the death of the process that the lifeline stands for."""

    def poll_timeout(self) -> float | None:
        """Return the milliseconds until the next check; None if there is none."""
        if self.next_check is None:
            return None
        return max(0.0, (self.next_check - time.monotonic()) * 1000)

    def run(self) -> None:
        """Serve until the host, or the process that the lifeline stands for, has died."""
        poll = select.poll()
        host, wakeup_reader = self.host.sock.fileno(), self.wakeup_reader.fileno()
        for fd in (host, wakeup_reader, self.lifeline):
            if fd >= 0:
                poll.register(fd, select.POLLIN)
        sending = False
        while True:
            for fd, events in poll.poll(self.poll_timeout()):
                if fd == wakeup_reader:
                    self.wakeup_reader.recv(READ_SIZE)  # does not block: it is readable
                    self.reap()
                elif fd == self.lifeline:
                    self.lifeline_lost()
                    return
                elif not self.read_orders(events):
                    return
            if self.poll_timeout() == 0:
                self.check_limits()
            if bool(self.host.unsent) != sending:
                sending = not sending
                poll.modify(host, select.POLLIN | (select.POLLOUT if sending else 0))

    def read_orders(self, events: int) -> bool:
        """Handle the orders of the host; return False if it has closed the socket."""
        if events & select.POLLOUT:
            self.host.flush()
        try:
            orders = self.host.receive()
        except EOFError:
            return False
        for order in orders:
            self.handle_order(order)
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
            self.killed_pids.discard(pid)
            self.child_reaped(pid, status)
        self.settle(childless=childless)

    def kill_trees(self, pids: Iterable[int]) -> bool:
        """Kill these children and all below them; return whether there is a death to wait for.

        Once is enough: when such a child dies, its orphans become our children, and SIGCHLD
        says so. A child that we may not kill (it runs as another user) is left alone.
        """
        waiting = False
        for pid in pids:
            if pid in self.killed_pids:
                waiting = True
            elif proctree.signal_tree(pid, signal.SIGKILL):
                self.killed_pids.add(pid)
                waiting = True
        return waiting

    def serve(self) -> NoReturn:
        try:
            self.run()
        except Exception:  # noqa: BLE001 (whatever broke: the host must hear of it, and nothing below may survive)
            self.host.send({"op": "broken", "error": traceback.format_exc()})
        finally:
            proctree.sweep(self.main_processes, everyone=self.is_init)
            os._exit(0)


# -- the keeper


class Keeper(Supervisor):
    """Starts the children of one policy and ends all that they leave behind."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        super().__init__(host, lifeline)
        self.limits: Any = {}
        self.checks_over_limit = 0  # in a row
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

    def lifeline_lost(self) -> None:
        # The host may see our end before the warden's, and must not send that one more orders.
        self.host.send({"op": "orphaned"})

    def confine(self, policy: Any) -> None:
        """Confine this process and report to the host how far; raise if that fails."""
        if not LINUX:
            gaps = ["can do all that the user can: this system has no confinement"]
            tmp, uploads = policy["tmp"] or "/tmp", policy["uploads"] or ""  # noqa: S108 (what children get to see)
            report = {"level": "none", "gaps": gaps, "tmp": tmp, "uploads": uploads}
            walls = None
        else:
            walls = confinement().find_walls(policy)
            report = confinement().report(policy, walls)._asdict()
        if policy["required"] and report["level"] != "full":
            raise launch.RefusedError(
                "full confinement is required and not possible here; a child "
                + ", and ".join(report["gaps"])
            )
        if walls is not None:
            confinement().confine(policy, walls)
            self.is_init = walls.pids
            if walls.seccomp:
                self.tag_self = confinement().seccomp.set_tag
            self.limits = policy["limits"]
        self.host.send({"op": "confined", **report})

    def handle_order(self, order: Any) -> None:
        if order["op"] == "spawn":
            self.spawn(order)
        elif order["id"] in self.orders:
            self.signal_order(self.orders[order["id"]], order["signal"])

    def spawn(self, request: Any) -> None:
        fds = self.host.take_fds(len(request["fds"]))
        tag = next(self.tags)
        try:
            self.tag_self(tag)
            pid = launch.launch(request, fds, self.defaults)
        except launch.RefusedError as error:
            # File names may hold bytes that are not text; the host reads strict UTF-8.
            text = str(error).encode("utf-8", "replace").decode()
            self.host.send({"op": "refused", "id": request["id"], "error": text})
            return
        finally:
            for fd in fds:
                os.close(fd)
        if self.limits:
            confinement().limits.bound_child(pid, self.limits)
            if self.next_check is None:
                self.next_check = time.monotonic() + confinement().watch.INTERVAL / 1000
        order = Order(request["id"], pid, tag)
        self.orders[order.id] = self.main_processes[pid] = order
        self.host.send({"op": "started", "id": order.id, "pid": pid})

    def signal_order(self, order: Order, number: int) -> None:
        if number == signal.SIGKILL:
            self.ending[order.id] = order
            self.settle(childless=False)
        elif not LINUX:
            proctree.signal_group(order.pid, number)
        else:
            orphans = self.orphans()
            if order.status is None:
                proctree.signal_tree(order.pid, number)
            for pid in orphans:
                if self.belongs(pid, order):
                    proctree.signal_tree(pid, number)

    def child_reaped(self, pid: int, status: int) -> None:
        order = self.main_processes.pop(pid, None)
        if order is not None:
            order.status = status
            if self.limits and os.WIFSIGNALED(status) and not order.cause:
                order.cause = confinement().watch.cause_of(os.WTERMSIG(status), self.limits)
            self.ending[order.id] = order
            if not LINUX:
                proctree.signal_group(pid, signal.SIGKILL)

    def settle(self, *, childless: bool) -> None:
        """Kill what outlives its order, and report the orders of which no process is left."""
        if not self.ending:
            return
        orphans = [] if childless else self.orphans()
        for order in list(self.ending.values()):
            pids = [pid for pid in orphans if self.belongs(pid, order)]
            if order.status is None:
                if LINUX:
                    pids.append(order.pid)
                else:
                    proctree.signal_group(order.pid, signal.SIGKILL)
            if not self.kill_trees(pids) and order.status is not None:
                self.report(order, order.status)

    def orphans(self) -> list[int]:
        """Return our children that we did not start."""
        if not LINUX:
            return []
        return [pid for pid in proctree.own_children() if pid not in self.main_processes]

    def belongs(self, orphan: int, order: Order) -> bool:
        # If there is a single order, every orphan belongs to it, also one that changed its tag.
        return len(self.orders) == 1 or proctree.tag_of(orphan) == order.tag

    def check_limits(self) -> None:
        """Kill the order that passed a limit; kill all orders if that does not help.

        The latter is for fork bombs: in a PID namespace one signal reaches all processes at
        once, and none of them can escape by forking meanwhile.
        """
        watch = confinement().watch
        self.next_check = time.monotonic() + watch.INTERVAL / 1000 if self.orders else None
        pids = watch.other_pids() if self.is_init else proctree.descendants(os.getpid())
        main_processes = {order.pid: order.id for order in self.main_processes.values()}
        excess = watch.find_excess(self.limits, pids, main_processes, self.order_of_orphan)
        self.checks_over_limit = 0 if excess is None else self.checks_over_limit + 1
        if excess is None:
            return
        culprit = self.orders.get(excess.order)
        if self.checks_over_limit > CHECKS_BEFORE_KILLING_ALL and self.is_init:
            proctree.kill_namespace()
            for order in self.orders.values():
                order.cause = order.cause or f"it ran beside a command of which {excess.cause}"
        elif culprit is not None:
            culprit.cause = culprit.cause or excess.cause
            proctree.kill_tagged(culprit.tag)
            self.signal_order(culprit, signal.SIGKILL)
        else:
            for pid in excess.pids:
                proctree.signal_descendant(pid, signal.SIGKILL)

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


class Warden(Supervisor):
    """Opens keepers, and kills the processes that a dead keeper leaves behind."""

    def __init__(self, host: socket.socket, lifeline: int) -> None:
        super().__init__(host, lifeline)
        self.keepers: dict[int, int] = {}  # by pid: our end of its lifeline, which our death closes

    def handle_order(self, order: Any) -> None:
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
            text = f"no confinement: the policy cannot be read: {error!r}"
            raise launch.RefusedError(text) from error
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
            # Open copies of these would hide the death of the warden or the host from others.
            for sock_copy in (self.host.sock, self.wakeup_reader, self.wakeup_writer):
                sock_copy.close()
            for fd in (self.lifeline, ours, *self.keepers.values()):
                if fd >= 0:
                    os.close(fd)
            keeper = Keeper(sock, lifeline)
            try:
                if policy is not None:
                    keeper.confine(policy)
            except Exception as error:  # noqa: BLE001 (whatever it was: without confinement it must not serve)
                keeper.host.send({"op": "unopened", "error": f"no confinement: {error}"})
                os._exit(1)
            keeper.serve()
        finally:
            os._exit(1)

    def child_reaped(self, pid: int, status: int) -> None:
        del status
        ours = self.keepers.pop(pid, None)
        if ours is not None:
            os.close(ours)

    def settle(self, *, childless: bool) -> None:
        if LINUX and not childless:
            self.kill_trees(pid for pid in proctree.own_children() if pid not in self.keepers)


def close_inherited_fds(keep_fd: int) -> None:
    """Close all descriptors that came from the host by accident; children would inherit them."""
    with os.scandir("/dev/fd") as entries:
        fds = [int(entry.name) for entry in entries]
    null = os.open("/dev/null", os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    for fd in (*fds, null):
        if fd > 2 and fd != keep_fd:  # noqa: PLR2004 (the three standard ones)
            try:
                os.close(fd)
            except OSError:
                continue  # the descriptor that listed them


def main() -> NoReturn:
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    host = socket.socket(fileno=os.dup(0))
    close_inherited_fds(host.fileno())
    os.chdir("/")  # noqa: TID251 (the warden's own process; it holds no folder)
    # A fork of the host may hold the socket open, so the host's death is also watched directly.
    lifeline, parent = -1, int(sys.argv[1])
    if sys.platform == "linux" and proctree.PIDFD and os.getppid() == parent:
        lifeline = os.pidfd_open(parent)
    Warden(host, lifeline).serve()


if __name__ == "__main__":
    main()
