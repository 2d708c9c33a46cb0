"""The places of a host's sessions: the folders where their commands run, and their limits."""

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

MAX_ATTEMPTS: Final = 20
UPLOADS: Final = ".uploads"
"""A folder beside those of the sessions; no session has this name."""


def find_workspace(name: str | Path) -> Path:
    """Return the folder of that name, as an absolute path. Reads the disk.

    `UserMustActError` if it does not exist, or if its name is not UTF-8: a session's log is text
    and could not contain such a name.
    """
    try:
        if not str(name):
            raise UserMustActError("the name of the workspace is empty; name a folder that exists")
        path = Path(name).expanduser().resolve(strict=True)
        path.name.encode()
        str(path).encode()
        if not path.is_dir():
            raise UserMustActError(
                f"the workspace {str(name)!a} is not a folder; name a folder that exists"
            )
    except UnicodeEncodeError:
        raise UserMustActError(
            f"the name of the folder {str(name)!a} is not UTF-8; rename it, or name another"
        ) from None
    except FileNotFoundError as error:
        raise UserMustActError(
            f"the folder {str(name)!r} doesn't exist; create it, or name another folder"
        ) from error
    except (OSError, RuntimeError, ValueError) as error:
        raise UserMustActError(
            f"the folder {str(name)!r} cannot be used as the workspace: {_reason(error)}; "
            "name a folder that exists"
        ) from error
    return path


def _reason(error: Exception) -> str:
    return (isinstance(error, OSError) and error.strerror) or str(error)


class Places:
    """One place for each session and workspace, created when it is first needed."""

    def __init__(self, runtime: Runtime, config: Config, home: Path, tmp: str) -> None:
        self._runtime = runtime
        self._bounds = Bounds(
            mode=config.confinement,
            user_home=user_home(config.environment) or Path("/"),
            hidden=(home, config.settings_home),
        )
        self._tmp = Path(tmp)
        self._has_tmp = False
        self._places: dict[tuple[str, Path, bool], LocalPlace] = {}

    def of(self, session_id: str, workspace: Path, *, read_only: bool) -> LocalPlace:
        key = (session_id, workspace, read_only)
        if key not in self._places:
            self._places[key] = LocalPlace(
                self._runtime.warden,
                self._runtime.bridge,
                self._bounds,
                workspace=workspace,
                tmp=partial(self.private, session_id),
                uploads=partial(self.uploads, session_id),
                read_only=read_only,
            )
        return self._places[key]

    def unconfined(self, workspace: Path) -> LocalPlace:
        """Return a place for programs of the user: they may do what the user may."""
        return LocalPlace(
            self._runtime.warden, self._runtime.bridge, Bounds(mode="off"), workspace=workspace
        )

    def of_server(self, name: str, workspace: Path, *, confined: bool) -> LocalPlace:
        """Return the place of an MCP server: unconfined, unless its settings say otherwise."""
        bounds = self._bounds if confined else Bounds(mode="off")
        return LocalPlace(
            self._runtime.warden,
            self._runtime.bridge,
            bounds,
            workspace=workspace,
            tmp=partial(self.private, name),
        )

    def forget(self, session_id: str) -> None:
        """Drop the places of a closed session; its folders stay until the host ends."""
        for key in [key for key in self._places if key[0] == session_id]:
            del self._places[key]

    def private(self, session_id: str) -> Path:
        """Return the folder for the temporary files of one session. Runs in a thread."""
        return self._create(self._tmp / session_id)

    def uploads(self, session_id: str) -> Path:
        """Return the folder for the files that people attached in one session. Runs in a thread.

        It is separate from the private folder, which commands may change: only the host writes
        here.
        """
        return self._create(self._tmp / UPLOADS / session_id)

    def _create(self, folder: Path) -> Path:
        self._has_tmp = True
        # Each time: a cleanup of temporary files may remove them. Two threads may run at once.
        for path in (self._tmp, folder.parent, folder):
            path.mkdir(mode=0o700, exist_ok=True)
        return folder

    async def close(self) -> None:
        """Remove the temporary folders."""
        if self._has_tmp:
            await self._runtime.bridge.to_thread(_remove, self._tmp)


def _remove(folder: Path) -> None:
    """Remove the folder, and retry if a left-over process removes files there meanwhile."""
    for _ in range(MAX_ATTEMPTS):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        if not folder.exists():
            return
    shutil.rmtree(folder)
