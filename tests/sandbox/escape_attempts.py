"""Attempts to escape a confinement. Each is Python that a child runs; no error means success.

`GAPS` says which gaps of a report allow each attempt.
"""

from __future__ import annotations

import os

USERFAULTFD = {"x86_64": 323, "aarch64": 282}[os.uname().machine]

FILES = "can read and write all files of the user"
SOCKETS = "can connect to the sockets of other programs, such as an ssh agent"
NAMES = "can see the names of files elsewhere, and change their modes and times"
EMPTY = "can empty files elsewhere"
PROCESSES = "can see other processes and their arguments"
SIGNALS = "can signal other processes of the same user"
TRACING = "can look into other processes of the same user"
NETWORK = "can use the network"
UDP = "can use the network by UDP"
ABSTRACT = "can connect to the abstract sockets of other programs"
SHARED = "can use the System V shared memory of other programs of the same user"
SET_ID = "can make programs that run with the rights of their owner or group"
FAMILIES = "can open sockets of every family, also those that no namespace holds"
CALLS = "can make calls of the kernel that ordinary programs do without"
OUTLIVES = "can outlive a call that was cancelled while another one runs"
BOUNDS = "can start processes faster than they are counted and killed"

PROLOGUE = """
import ctypes, json, os, socket, sys
facts = json.loads(sys.argv[1])
outside, readable, victim = (facts[name] for name in ("outside", "readable", "victim"))
keeper, libc = os.getppid(), ctypes.CDLL(None, use_errno=True)

def check(good):
    if not good:
        raise OSError
"""

# io_uring with room for one, and userfaultfd for one's own pages; machines may have either.
RARE = f"""((425, (1, ctypes.create_string_buffer(200))), ({USERFAULTFD}, (1,)))"""

ATTEMPTS = {
    "read a secret": 'open(f"{outside}/secret").read()',
    "read a secret by dots": 'open(f"{os.getcwd()}/../outside/secret").read()',
    "read a secret by a symlink": """
os.symlink(f"{outside}/secret", "link")
try: open("link").read()
finally: os.unlink("link")
""",
    "read a secret by a symlink to a folder": """
os.symlink(outside, "folder")
try: open("folder/secret").read()
finally: os.unlink("folder")
""",
    "read a secret by a hard link": """
os.link(f"{outside}/secret", "hard")
try: open("hard").read()
finally: os.unlink("hard")
""",
    "read a secret by the root of another process": """
open(f"/proc/{victim}/root{outside}/secret").read()
""",
    "read a secret by the root of the keeper": """
open(f"/proc/{keeper}/root{outside}/secret").read()
""",
    "list the home of Keryx": 'os.listdir(f"{outside}/keryx")',
    "write outside": 'open(f"{outside}/new", "w").close()',
    "rename a file outside": """
os.rename(f"{outside}/named", f"{outside}/other")
os.rename(f"{outside}/other", f"{outside}/named")
""",
    "move a file out": """
open("mine", "w").close()
try: os.rename("mine", f"{outside}/moved")
finally: os.path.exists("mine") and os.unlink("mine")
""",
    "write what is only readable": 'open(f"{readable}/file", "r+").close()',
    "write what is only readable by a hard link": """
os.link(f"{readable}/file", "twin")
try: open("twin", "r+").close()
finally: os.unlink("twin")
""",
    "write in the root": """
os.mkdir("/keryx-was-here")
os.rmdir("/keryx-was-here")
""",
    "empty a file outside": 'os.truncate(f"{outside}/named", 0)',
    "see a file outside": 'os.stat(f"{outside}/secret")',
    "change a mode outside": 'os.chmod(f"{outside}/named", 0o640)',
    "connect to a socket": """
socket.socket(socket.AF_UNIX).connect(f"{outside}/agent")
""",
    "connect to an abstract socket": """
socket.socket(socket.AF_UNIX).connect("\\0" + facts["abstract"])
""",
    "connect by TCP": """
socket.create_connection(("127.0.0.1", facts["tcp"]), 5).close()
""",
    "ask by UDP": """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.settimeout(facts["patience"])
sock.connect(("127.0.0.1", facts["udp"]))
sock.send(b"question")
sock.recv(100)
""",
    "signal a process": "os.kill(victim, 0)",
    "see a process": 'check(b"1000" in open(f"/proc/{victim}/cmdline", "rb").read())',
    "look into a process": 'check(open(f"/proc/{victim}/environ", "rb").read())',
    "attach shared memory": 'check(libc.shmget(facts["shared"], 0, 0) >= 0)',
    "make a program that runs as its owner": """
open("program", "w").close()
try: os.chmod("program", 0o4755)
finally: os.unlink("program")
""",
    "make a program that runs as its group": """
os.close(os.open("program", os.O_CREAT | os.O_WRONLY, 0o2755))
try: check(os.stat("program").st_mode & 0o2000)
finally: os.unlink("program")
""",
    "open a socket of a rare family": """
def opens(family):
    try: socket.socket(family, socket.SOCK_STREAM).close()
    except OSError: return False
    return True
check(any(map(opens, {*range(46)} - {1, 2, 10, 16})))
""",
    "change the tag that a call is known by": """
import resource
before = resource.getrlimit(10)
check(before[0] != before[1])
resource.setrlimit(10, (before[0] + 1, before[1]))
""",
    "make rare calls of the kernel": f"""
check(any(libc.syscall(number, *arguments) >= 0 for number, arguments in {RARE}))
""",
}

NEVER = {
    "look into the keeper": 'os.readlink(f"/proc/{keeper}/exe")',
    "change a setting of the kernel": 'os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY)',
    "become almighty in a namespace": "check(libc.unshare(0x10000000) == 0)",
    "mount": 'check(libc.mount(b"none", b"/dev/shm", b"tmpfs", 0, None) == 0)',
    "unmount": 'check(libc.umount2(b"/usr", 2) == 0)',
    "change the root": 'os.chroot(".")',
    "make a device": 'os.mknod("device", 0o60600, os.makedev(8, 0))',
    "read the log of the kernel": 'os.open("/dev/kmsg", os.O_RDONLY)',
    "change the mode of a device": 'os.chmod("/dev/null", 0o666)',
    "read the keys of the machine": "check(open('/etc/shadow').read())",
}
"""What must fail behind all walls, though no gap speaks of it."""

GAPS = {
    **{
        name: {FILES}
        for name in ATTEMPTS
        if name.split()[0] in ("read", "list", "write", "rename", "move")
    },
    "empty a file outside": {FILES, EMPTY},
    "see a file outside": {FILES, NAMES},
    "change a mode outside": {FILES, NAMES},
    "connect to a socket": {SOCKETS},
    "connect to an abstract socket": {ABSTRACT},
    "connect by TCP": {NETWORK},
    "ask by UDP": {NETWORK, UDP},
    "signal a process": {SIGNALS},
    "see a process": {PROCESSES},
    "look into a process": {TRACING},
    "attach shared memory": {SHARED},
    "make a program that runs as its owner": {SET_ID},
    "make a program that runs as its group": {SET_ID},
    "open a socket of a rare family": {FAMILIES},
    "make rare calls of the kernel": {CALLS},
    "change the tag that a call is known by": {OUTLIVES},
}


def script(attempts: dict[str, str]) -> str:
    """A program that tries all and prints the names of those that worked, as JSON."""
    lines = [PROLOGUE, "escaped = []"]
    for name, code in attempts.items():
        body = "\n    ".join(code.strip().splitlines())
        lines += ["try:", f"    {body}", "except Exception: pass"]
        lines += [f"else: escaped.append({name!r})"]
    return "\n".join([*lines, "print(json.dumps(escaped))"])
