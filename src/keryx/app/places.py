"""The places of a host's sessions: where their commands run, and what those may do."""

from __future__ import annotations

import shutil
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from keryx.app.runtime import Runtime
from keryx.config import Config, user_home
from keryx.errors import UserMustActError
from keryx.sandbox import Bounds, LocalPlace

TRIES: Final = 20
UPLOADS: Final = ".uploads"
"""Beside the folders of the sessions; no session is named so."""


def find_workspace(named: str | Path) -> Path:
    """The folder of that name, as an absolute path. Asks the disk.

    `UserMustActError` if there is none. A name that is not UTF-8 is refused too: a session's log is
    text, and could not name it.
    """
    try:
        if not str(named):
            raise UserMustActError("the name of the folder is empty; name a folder that exists")
        path = Path(named).expanduser().resolve(strict=True)
        path.name.encode()
        str(path).encode()
        if not path.is_dir():
            raise UserMustActError(f"{str(named)!a} is not a folder; name a folder that exists")
    except UnicodeEncodeError:
        raise UserMustActError(
            f"the name of the folder {str(named)!a} is not UTF-8; rename it, or name another"
        ) from None
    except FileNotFoundError:
        raise UserMustActError(
            f"the folder {str(named)!r} doesn't exist; create it, or name another"
        ) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise UserMustActError(
            f"{str(named)!r} cannot be used as a folder: {_reason(error)}; name one that exists"
        ) from error
    return path


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


class Places:
    """One place for each session and workspace, made when it is first needed."""

    def __init__(self, runtime: Runtime, config: Config, home: Path, tmp: str) -> None:
        self._runtime = runtime
        self._bounds = Bounds(
            mode=config.confinement,
            user_home=user_home(config.environment) or Path("/"),
            hidden=(home,),
        )
        self._tmp = Path(tmp)
        self._has_tmp = False
        self._made: dict[tuple[str, Path, bool], LocalPlace] = {}

    def of(self, session_id: str, workspace: Path, *, read_only: bool) -> LocalPlace:
        key = (session_id, workspace, read_only)
        if key not in self._made:
            self._made[key] = LocalPlace(
                self._runtime.warden,
                self._runtime.bridge,
                self._bounds,
                workspace=workspace,
                tmp=partial(self.private, session_id),
                uploads=partial(self.uploads, session_id),
                read_only=read_only,
            )
        return self._made[key]

    def forget(self, session_id: str) -> None:
        """The session is not open any more; its folder stays until the host ends."""
        for key in [key for key in self._made if key[0] == session_id]:
            del self._made[key]

    def private(self, session_id: str) -> Path:
        """A folder for the temporary files of one session. Runs in a thread."""
        return self._make(self._tmp / session_id)

    def uploads(self, session_id: str) -> Path:
        """A folder for what people attached in one session. Runs in a thread.

        It is no part of the private one: that is for commands to change, and the host must find
        here what it laid here, and nothing else.
        """
        return self._make(self._tmp / UPLOADS / session_id)

    def _make(self, folder: Path) -> Path:
        self._has_tmp = True
        # Each time: whoever cleans up temporary files may have removed them. Two may come at once.
        for each in (self._tmp, folder.parent, folder):
            each.mkdir(mode=0o700, exist_ok=True)
        return folder

    async def close(self) -> None:
        """Remove what was temporary."""
        if self._has_tmp:
            await self._runtime.bridge.to_thread(_remove, self._tmp)


def _remove(folder: Path) -> None:
    """Also while a left-over removes things of its own in there: then it is looked at anew."""
    for _ in range(TRIES):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        if not folder.exists():
            return
    shutil.rmtree(folder)
