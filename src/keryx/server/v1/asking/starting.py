"""Begins the turn of a request: in a new session, in the session of an earlier response, or by
giving a waiting turn the results of the client's calls. Each is found by its id, never by its text.
"""

from __future__ import annotations

from time import time
from typing import Any, Final

import msgspec

from keryx import commands as cm
from keryx.app.host.socket_protocol import NewSession
from keryx.app.portable.conversation_log import Place
from keryx.app.portable.importing import import_conversation
from keryx.config import DEFAULT
from keryx.engine.operations.titles import first_title
from keryx.errors import UserMustActError
from keryx.ids import new_id
from keryx.messages import Effort, TurnOptions
from keryx.server.access.auth import Caller
from keryx.server.service import Service
from keryx.server.v1.answering.response_object import echo
from keryx.server.v1.api_errors import invalid
from keryx.server.v1.asking import bodies
from keryx.server.v1.asking.begun import AgentSettings, Begun, TurnRequest
from keryx.server.v1.asking.client_results import ClientResults, uploaded
from keryx.server.v1.asking.continuing import Continuations
from keryx.server.v1.asking.prompts import CONTINUE, Prompt, chat_prompt, response_prompt
from keryx.server.v1.asking.remote_images import load_images
from keryx.server.v1.model_names import model_of

TITLE: Final = "API: "
"""The beginning of the titles of sessions that this API makes; they are archived."""


class Starter:
    """Begins turns for one server. Belongs to one loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._host = service.host_client
        self._results = ClientResults(service)
        self._continuations = Continuations(service, self._results)

    async def chat(self, body: bodies.ChatBody, caller: Caller) -> Begun:
        """Begin the turn of a chat completion."""
        options = TurnOptions(
            client_tools=bodies.client_tools(body),
            tool_choice=bodies.tool_choice(body),
            max_tokens=body.max_completion_tokens or body.max_tokens,
        )
        schema = bodies.answer_schema(body.response_format, "response_format")
        settings = await self._settings(body, body.reasoning_effort)
        await self._load_images(body.messages, "messages")
        prompt = await self._service.threads.to_thread(chat_prompt, body.messages)
        return await self._begin(prompt, TurnRequest(settings, options, schema), caller)

    async def response(self, body: bodies.ResponseBody, caller: Caller) -> Begun:
        """Begin the turn of a response, or let the turn of an earlier one go on."""
        options = TurnOptions(
            instructions=body.instructions or "",
            client_tools=bodies.client_tools(body),
            tool_choice=bodies.tool_choice(body),
            max_tokens=body.max_output_tokens,
            request=echo(body),
        )
        schema = bodies.answer_schema(body.text and body.text.format, "text.format")
        settings = await self._settings(body, body.reasoning and body.reasoning.effort)
        request = TurnRequest(settings, options, schema)
        previous = body.previous_response_id
        if isinstance(body.input, list):
            await self._load_images(body.input, "input")
        prompt = await self._service.threads.to_thread(
            lambda: response_prompt(body.input or [], continues=previous is not None)
        )
        if previous is None:
            return await self._begin(prompt, request, caller)
        begun = await self._continuations.resume(previous, prompt, options.request, caller)
        if begun is not None:
            return begun
        if not prompt.has_message:
            raise _nothing_to_answer()
        session_id = await self._continuations.session(previous, settings, caller)
        try:
            return await self._send(session_id, prompt, request, caller)
        finally:
            self._continuations.release(session_id)

    async def _load_images(self, entries: list[dict[str, Any]], place: str) -> None:
        await load_images(entries, place, self._host.config.tools.web.allow_private)

    async def _settings(self, body: bodies.SharedBody, effort: Effort | None) -> AgentSettings:
        model = model_of(self._host, body.model)
        agent = body.keryx or bodies.AgentBody()
        names = agent.tools if bodies.uses_tools(body) else ()
        if names is None:
            names = await self._host.tools_for("api", DEFAULT)
        try:
            tools = (await self._host.tools_to_choose()).chosen(names)
        except UserMustActError as error:
            raise invalid(str(error), "keryx.tools") from error
        workspace = await self._service.folder(agent.workspace or ".")
        return AgentSettings(
            model=model,
            tools=tools,
            effort=None if effort == "none" else effort,
            workspace=workspace,
            names_workspace=agent.workspace is not None,
        )

    async def _begin(self, prompt: Prompt, request: TurnRequest, caller: Caller) -> Begun:
        """Begin a turn that no earlier response is named for."""
        begun = await self._results.give(prompt, request.options.request, caller)
        if begun is not None:
            return begun
        if not prompt.has_message:
            if not prompt.history.items:
                raise _nothing_to_answer()
            prompt.text = CONTINUE
        session_id = await self._new_session(prompt, request.settings)
        return await self._send(session_id, prompt, request, caller)

    async def _new_session(self, prompt: Prompt, settings: AgentSettings) -> str:
        """Create an archived session with what was said before."""
        title = TITLE + (first_title(prompt.text) or "new")
        if prompt.history.items:
            place = Place(
                model=settings.model,
                workspace=settings.workspace,
                tools=settings.tools,
                at=time(),
                title=title,
                effort=settings.effort,
                archived=True,
            )
            return await import_conversation(self._host, prompt.history, place)
        new_session = NewSession(
            session_id=new_id("s"),
            workspace=settings.workspace,
            model=settings.model,
            tools=settings.tools,
            effort=settings.effort,
            title=title,
            archived=True,
        )
        await self._host.open(new_session)
        return new_session.session_id

    async def _send(
        self, session_id: str, prompt: Prompt, request: TurnRequest, caller: Caller
    ) -> Begun:
        texts = (request.options.instructions, prompt.instructions)
        instructions = "\n\n".join(filter(None, texts))
        command = cm.SendMessage(
            command_id=self._service.new_id(),
            session_id=session_id,
            by=caller.name,
            text=prompt.text,
            attachments=await uploaded(self._host, prompt),
            schema=request.schema,
            attended=False,
            options=msgspec.structs.replace(request.options, instructions=instructions),
        )
        try:
            sent = await self._service.send(command)
        except UserMustActError as error:
            raise invalid(str(error)) from error
        return Begun(session_id, sent.seq, sent.turn_id)


def _nothing_to_answer() -> Exception:
    return invalid("There is nothing to answer; send a message of a user", "input")
