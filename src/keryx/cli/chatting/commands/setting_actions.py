"""What the slash commands about settings and stored things do: model, tools, memory and so on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from keryx.app.services.places import find_workspace
from keryx.app.skill_folders import skill_folders
from keryx.cli.chatting.commands.slash_commands import typed_path
from keryx.cli.chatting.conversation import Conversation
from keryx.cli.chatting.pieces import Piece, one_line, printable
from keryx.config import DEFAULT
from keryx.errors import UserMustActError
from keryx.messages import EFFORTS
from keryx.ports.memory import Memory, profile_and_person
from keryx.ports.view import SessionSettings
from keryx.tools.skills.catalog import read_skills

MOST_MEMORIES: Final = 20
ALL: Final = 1_000_000


class PlannedSettings(NamedTuple):
    """What a session will have that the next message opens; a look opens none."""

    model: str
    workspace: str
    tools: Sequence[str]
    personality: str | None
    effort: str | None = None


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

    async def _settings(self) -> SessionSettings | PlannedSettings:
        """Return the settings of the session, or of the one that the next message opens."""
        session, opening = self._conversation.session, self._conversation.opening
        if session is not None:
            return (await session.view()).settings
        client = self._app.host_client
        tools = opening.tools
        if tools is None:
            tools = await client.tools_for("cli", DEFAULT)
        folder = await client.to_thread(partial(find_workspace, opening.workspace))
        return PlannedSettings(
            client.models.default,
            str(folder),
            (await client.tools_to_choose()).chosen(tools),
            opening.personality,
        )

    async def _model(self, name: str) -> None:
        if not name:
            others = "\n".join(self._app.host_client.models.names())
            self._note(f"The model is {(await self._settings()).model}.\n{others}".rstrip())
            return
        self._app.host_client.models.check(name)
        await (await self._conversation.current()).change(model=name)
        self._note(f"The model is now {name}.")

    async def _effort(self, level: str) -> None:
        levels = f"{', '.join(EFFORTS)}, default"
        if level and level != DEFAULT and level not in EFFORTS:
            raise UserMustActError(f"there is no effort {level!r}; there are {levels}")
        if not level:
            current = (await self._settings()).effort or DEFAULT
            self._note(f"The effort is {current}. Levels: {levels}.")
            return
        effort = None if level == DEFAULT else level
        await (await self._conversation.current()).change(effort=effort)
        self._note(f"The effort is now {effort or DEFAULT}.")

    async def _tools(self, names: str) -> None:
        if names:
            session = await self._conversation.current()
            words = [name for part in names.split(",") if (name := part.strip())]
            await session.change(
                tools=(await self._app.host_client.tools_to_choose()).chosen(words)
            )
        tools = (await self._settings()).tools
        self._note(f"Tools: {', '.join(tools) or 'none'}")

    async def _workspace(self, word: str) -> None:
        if word:
            session = await self._conversation.current()
            path = typed_path(self._conversation.workspace, word)
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
        session = self._conversation.session
        text = "" if session is None else await session.diff()
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
        lines = [f"{entry.id}  {_whose(entry)}{one_line(entry.text, 200)}" for entry in memories]
        self._note("\n".join(lines) or "Nothing is remembered yet.")

    async def _skills(self, _value: str) -> None:
        host_client = self._app.host_client
        session = self._conversation.session
        profile = DEFAULT if session is None else (await session.view()).settings.profile
        folders = skill_folders(host_client.config, profile)
        skills, warnings = await host_client.to_thread(partial(read_skills, *folders))
        lines = [f"{skill.name}: {one_line(skill.description, 200)}" for skill in skills]
        self._note("\n".join([*lines, *warnings]) or f"There are no skills in {folders[-1]}.")

    async def _export(self, word: str) -> None:
        session = self._conversation.session
        if session is None:
            raise UserMustActError("There is nothing to export yet.")
        rows = await self._app.store.transcript(session.session_id, limit=ALL)
        parts = [text for row in rows if (text := _markdown(row.event))]
        name = word or f"{session.session_id}.md"
        file = typed_path(self._conversation.transcript.workspace, name)
        content = "\n\n".join(parts) + "\n"
        await self._app.host_client.to_thread(lambda: _write(file, content))
        self._note(f"Wrote {file}.")


def _whose(memory: Memory) -> str:
    _, person = profile_and_person(memory.profile)
    return "" if person is None else f"(of {person}) "


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
        with file.open("x", encoding="utf-8", errors="replace") as stream:
            stream.write(content)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UserMustActError(f"{file} was not written: {reason}") from error
