"""What the slash commands about settings and stored things do: model, tools, memory and so on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Final

from keryx.app.services.places import find_workspace
from keryx.app.tools import SKILLS
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.config import DEFAULT
from keryx.errors import UserMustActError
from keryx.ports.view import SessionSettings
from keryx.tools.skills.catalog import read_skills

MOST_MEMORIES: Final = 20
ALL: Final = 1_000_000


class SettingActions:
    """Shows and changes the settings of the session."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._app = conversation.app
        self.by_name: dict[str, Callable[[str], Awaitable[None]]] = {
            "model": self._model,
            "effort": self._effort,
            "tools": self._tools,
            "workspace": self._workspace,
            "personality": self._personality,
            "diff": self._diff,
            "usage": self._usage,
            "memory": self._memory,
            "skills": self._skills,
            "export": self._export,
        }

    def _note(self, text: str) -> None:
        self._conversation.view.show([Piece("note", text)])

    async def _settings(self) -> SessionSettings:
        return (await (await self._conversation.current()).view()).settings

    async def _model(self, name: str) -> None:
        if not name:
            others = "\n".join(self._app.host_client.models.names())
            self._note(f"The model is {(await self._settings()).model}.\n{others}".rstrip())
            return
        self._app.host_client.models.check(name)
        await (await self._conversation.current()).change(model=name)
        self._note(f"The model is now {name}.")

    async def _effort(self, level: str) -> None:
        await (await self._conversation.current()).change(effort=level or None)
        self._note(f"The effort is now {level or 'the profile default'}.")

    async def _tools(self, names: str) -> None:
        session = await self._conversation.current()
        if names:
            tools = tuple(name for part in names.split(",") if (name := part.strip()))
            await session.change(tools=tools)
        tools = (await self._settings()).tools
        self._note(f"Tools: {', '.join(tools) or 'none'}")

    async def _workspace(self, word: str) -> None:
        if word:
            session = await self._conversation.current()
            path = Path(self._conversation.workspace) / Path(word).expanduser()  # noqa: ASYNC240 (no access)
            folder = await self._app.host_client.to_thread(partial(find_workspace, path))
            await session.change(workspace=str(folder))
        self._note(f"The workspace is {(await self._settings()).workspace}.")

    async def _personality(self, name: str) -> None:
        names = self._app.host_client.config.profile(DEFAULT).personalities
        if name and name != "default" and name not in names:
            raise UserMustActError(
                f"there is no personality {name!r}; there are {', '.join(names) or 'none yet'}"
            )
        if name:
            session = await self._conversation.current()
            await session.change(personality=None if name == "default" else name)
        current = (await self._settings()).personality or "the profile default"
        self._note(f"The personality is {current}. Others: {', '.join(names) or 'none'}.")

    async def _diff(self, _value: str) -> None:
        text = await (await self._conversation.current()).diff()
        piece = Piece("diff", printable(text.rstrip("\n")))
        self._conversation.view.show([piece] if text else [Piece("note", "No changes.")])

    async def _usage(self, _value: str) -> None:
        session = self._conversation.session
        rows = [] if session is None else await self._app.store.usage(session.session_id)
        lines = [
            f"{row.model}: input {row.input_tokens:,}, cached {row.cached_tokens:,}, output "
            f"{row.output_tokens:,}, cost {'unknown' if row.cost is None else f'${row.cost:.4f}'}"
            for row in rows
        ]
        self._note("\n".join(lines) or "No usage yet.")

    async def _memory(self, words: str) -> None:
        memory = self._app.memory
        if words:
            memories = await memory.search(words, limit=MOST_MEMORIES)
        else:
            memories = (await memory.list(limit=MOST_MEMORIES)).memories
        lines = [f"{entry.id}  {one_line(entry.text, 200)}" for entry in memories]
        self._note("\n".join(lines) or "Nothing is remembered yet.")

    async def _skills(self, _value: str) -> None:
        host_client = self._app.host_client
        folder = host_client.config.home / SKILLS
        skills, warnings = await host_client.to_thread(lambda: read_skills(folder))
        lines = [f"{skill.name}: {one_line(skill.description, 200)}" for skill in skills]
        self._note("\n".join([*lines, *warnings]) or f"There are no skills in {folder}.")

    async def _export(self, word: str) -> None:
        session = self._conversation.session
        if session is None:
            raise UserMustActError("There is nothing to export yet.")
        rows = await self._app.store.transcript(session.session_id, limit=ALL)
        parts = [text for row in rows if (text := _markdown(row.event))]
        name = word or f"{session.session_id}.md"
        file = Path(self._conversation.transcript.workspace) / Path(name).expanduser()  # noqa: ASYNC240 (no access)
        content = "\n\n".join(parts) + "\n"
        await self._app.host_client.to_thread(lambda: _write(file, content))
        self._note(f"Wrote {file}.")


def _markdown(event: object) -> str:
    name, text = type(event).__name__, str(getattr(event, "text", ""))
    match name:
        case "MessageAccepted":
            return "\n".join(f"> {line}" for line in text.splitlines())
        case "StepReplied":
            return text
        case "CallFinished":
            return f"*{getattr(event, 'tool', '')}: {getattr(event, 'outcome', '')}*"
        case _:
            return ""


def _write(file: Path, content: str) -> None:
    try:
        with file.open("x") as stream:
            stream.write(content)
    except OSError as error:
        raise UserMustActError(f"{file} was not written: {error.strerror}") from error
