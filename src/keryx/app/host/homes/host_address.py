"""The address of a host: the socket that it listens on, and the files that a killed host leaves."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from keryx.decoding import decode_json

SOCKET: Final = "host.sock"
TMP_PREFIX: Final = "keryx-"
# The kernel limits the path of a socket to 108 bytes, macOS to 104.
LONGEST_SOCKET_PATH: Final = 100
# In the folder for temporary files the longest path of a socket is that of a script:
# /keryx-ID/session_ID/run-ID/s, where each id has 16 digits.
LONGEST_TMP: Final = LONGEST_SOCKET_PATH - 71
SHORT_TMP: Final = "/tmp"  # noqa: S108 (what is made there has a name that nobody can guess)
BACKLOG: Final = 128


class HostAddress(msgspec.Struct, frozen=True):
    """Which process owns the home, and how to reach it. Written to `host.json`."""

    pid: int
    socket: str
    secret: str
    tmp: str = ""
    """The folder for temporary files, if it exists; a killed host leaves it behind."""
    guest: str = ""
    """The id of a guest; empty for the owner of the home."""


def socket_path(at: Path) -> str:
    """Return that path, or one in a temporary folder (not created) if it is too long."""
    path = str(at.absolute())
    return path if len(os.fsencode(path)) <= LONGEST_SOCKET_PATH else f"{new_tmp()}/{SOCKET}"


def listen(address: HostAddress, file: Path) -> socket.socket:
    """Listen at this address, and write it to the file.

    It is written under another name first: whoever is killed here has said what it left behind.
    """
    provisional = _provisional(file)
    _write_address(provisional, address)
    at = Path(address.socket)
    listening = socket.socket(socket.AF_UNIX)
    try:
        if at.parent != file.parent.absolute():
            at.parent.mkdir(mode=0o700)
        at.unlink(missing_ok=True)
        listening.bind(address.socket)
        at.chmod(0o600)
        listening.listen(BACKLOG)
        provisional.replace(file)
    except BaseException:
        listening.close()
        raise
    return listening


def _provisional(file: Path) -> Path:
    return file.with_name(f"{file.name}.new")


def read_address(file: Path) -> HostAddress | None:
    try:
        return decode_json(file.read_bytes(), HostAddress)
    except (OSError, msgspec.DecodeError):
        return None


def _write_address(at: Path, address: HostAddress) -> None:
    file = os.open(at, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        os.write(file, msgspec.json.encode(address))
    finally:
        os.close(file)


def new_tmp() -> str:
    """Return a name for a temporary folder that nobody can guess; the folder is not created.

    Sockets are made in it, so it is elsewhere if the user's folder for temporary files has a path
    that leaves them no room.
    """
    parent = tempfile.gettempdir()
    if len(os.fsencode(parent)) > LONGEST_TMP:
        parent = SHORT_TMP
    return f"{parent}/{TMP_PREFIX}{secrets.token_hex(8)}"


def remove_remains(file: Path) -> None:
    """Remove what a host left behind that wrote its address to this file, and the file."""
    for address_file in (file, _provisional(file)):
        address = read_address(address_file)
        if address is not None:
            remove_socket(address, file.parent)
            _remove_tmp(Path(address.tmp))
        with suppress(OSError):
            address_file.unlink()


def _remove_tmp(folder: Path) -> None:
    """Remove the temporary folder of a killed host, if the name and the owner are as expected."""
    with suppress(OSError):
        status = folder.lstat()
        is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
        if is_ours and folder.name.startswith(TMP_PREFIX):
            shutil.rmtree(folder, ignore_errors=True)


def remove_socket(address: HostAddress, folder: Path) -> None:
    at = Path(address.socket)
    with suppress(OSError):
        at.unlink()
    if at.parent != folder.absolute():
        _remove_tmp(at.parent)  # created because the path of the home is too long
