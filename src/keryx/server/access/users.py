"""The named users of a home: create, list, change and remove them. Everything here uses the disk.

A user is a folder: the user's own home, with a file that says whose it is. So whatever a session of
that user stores is in a store of its own, and nothing has to be filtered out for others.
"""

from __future__ import annotations

import hmac
import re
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from keryx.config.users import NAME_PATTERN, USER_FILE, USERS, UserRecord, user_home
from keryx.errors import UserMustActError
from keryx.server.access.password import check_length, derived
from keryx.server.access.secret_file import SecretFile, Stamp

NO_NAME: Final = "-"
"""The name in a record that does not exist yet; nobody can have it."""
COST: Final = 2**15
_CHANGEABLE: Final = ("disabled", "cost_per_day", "tokens_per_day")


class Users:
    """The users below one home."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def all(self) -> tuple[UserRecord, ...]:
        """Return all users by name. One whose file cannot be read is left out."""
        with suppress(OSError):
            names = sorted(path.parent.name for path in self._folder.glob(f"*/{USER_FILE}"))
            return tuple(user for user in map(self._read_or_none, names) if user is not None)
        return ()

    def find(self, name: str) -> UserRecord:
        """Return this user; `UserMustActError` if there is none."""
        user = self._file(name).read() if re.fullmatch(NAME_PATTERN, name) else _no_user()
        if user.name != name:
            raise UserMustActError(
                f"there is no user {name!r}; `keryx users list` shows all of them"
            )
        return user

    def add(self, name: str, password: str, folder: Path | None = None) -> UserRecord:
        """Create a user with this password, whose sessions work below the folder."""
        if not re.fullmatch(NAME_PATTERN, name):
            raise UserMustActError(
                "a user's name may have at most 32 small letters, digits and . - _, and must "
                "begin with a letter or digit; choose another name"
            )
        if user_home(self._home, name).joinpath(USER_FILE).exists():
            raise _taken(name)
        work = (folder or self._default_folder(name)).expanduser().absolute()
        record = _with_password(UserRecord(name=name, folder=str(work)), password, at=0.0)
        self._check_folder(work)
        work.mkdir(mode=0o700, parents=True, exist_ok=True)
        record = msgspec.structs.replace(record, folder=str(work.resolve()))

        def create(before: UserRecord) -> UserRecord:
            if before.name != NO_NAME:
                raise _taken(name)
            return record

        return self._file(name).change(create)

    def set_password(self, name: str, password: str, *, at: float) -> None:
        """Replace the password. Everybody who is signed in as this user is signed out."""
        self._change(name, lambda user: _with_password(user, password, at=at))

    def change(self, name: str, **changes: Any) -> UserRecord:
        """Change whether the user is disabled, and the limits."""
        assert set(changes) <= set(_CHANGEABLE), changes
        return self._change(name, lambda user: msgspec.structs.replace(user, **changes))

    def remove(self, name: str) -> None:
        """Remove the user with everything that the user's sessions stored.

        The folder that the sessions worked in stays: it may hold the user's own files.
        """
        self.find(name)
        home = user_home(self._home, name)
        (home / USER_FILE).unlink(missing_ok=True)  # from now on nobody signs in
        # A new user of this name must not meet what a host that still runs writes there.
        removed = home.with_name(f".removed-{secrets.token_hex(4)}")
        home.rename(removed)
        shutil.rmtree(removed)

    def matches(self, name: str, password: str) -> bool:
        """Return whether this is the user's password. It takes as long if there is no such user."""
        try:
            user = self.find(name)
        except UserMustActError:
            user = _no_user()
        salt = bytes.fromhex(user.salt) if user.salt else b"no such user at all"
        result = derived(password, salt, user.cost or COST)
        return bool(user.hash) and hmac.compare_digest(result, bytes.fromhex(user.hash))

    def stamp(self) -> tuple[tuple[str, Stamp | None], ...]:
        """Return a value that differs after each change of a user."""
        with suppress(OSError):
            names = sorted(path.parent.name for path in self._folder.glob(f"*/{USER_FILE}"))
            return tuple((name, self._file(name).stamp()) for name in names)
        return ()

    # -- files

    @property
    def _folder(self) -> Path:
        return self._home / USERS

    def _default_folder(self, name: str) -> Path:
        home = self._home.absolute()
        return home.with_name(f"{home.name}-users") / name

    def _check_folder(self, folder: Path) -> None:
        """Refuse a folder that holds the home or another user's folder, or is inside of one."""
        folders = [self._home.resolve(), *(Path(user.folder) for user in self.all())]
        real = folder.resolve()
        for other in folders:
            if real == other or real in other.parents or other in real.parents:
                raise UserMustActError(
                    f"the folder {folder} and {other} overlap, so one could read the other; "
                    "choose another folder"
                )

    def _file(self, name: str) -> SecretFile[UserRecord]:
        return SecretFile(user_home(self._home, name) / USER_FILE, UserRecord, _no_user)

    def _read_or_none(self, name: str) -> UserRecord | None:
        try:
            return self.find(name)
        except UserMustActError:
            return None

    def _change(self, name: str, change: Callable[[UserRecord], UserRecord]) -> UserRecord:
        self.find(name)

        def change_existing(user: UserRecord) -> UserRecord:
            if user.name == NO_NAME:
                raise UserMustActError(f"the user {name!r} was removed meanwhile")
            return change(user)

        return self._file(name).change(change_existing)


def _taken(name: str) -> UserMustActError:
    return UserMustActError(
        f"there is a user {name!r} already; choose another name, or remove it first"
    )


def _no_user() -> UserRecord:
    return UserRecord(name=NO_NAME, folder="")


def _with_password(user: UserRecord, password: str, *, at: float) -> UserRecord:
    check_length(password)
    salt = secrets.token_bytes(16)
    return msgspec.structs.replace(
        user,
        salt=salt.hex(),
        hash=derived(password, salt, COST).hex(),
        cost=COST,
        signed_out_at=at,
    )
