"""Messages to a session: send, change and withdraw them; and the draft that a person types."""

from __future__ import annotations

from contextlib import nullcontext

from litestar import delete, patch, post, put
from litestar.params import JSONBody
from msgspec import UNSET

from keryx import commands as cm
from keryx.server import schemas
from keryx.server.problems import conflict, refusals_as_conflicts, unprocessable
from keryx.server.routes.params import IdempotencyKey, MessageId, SessionId, TheCaller, TheService


@post("/api/sessions/{session_id:str}/messages", status_code=202)
async def send_message(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    data: JSONBody[schemas.NewMessage],
    idempotency_key: IdempotencyKey = None,
) -> schemas.Accepted:
    """Say something; answered once it is durable. The same key and body again is one message.

    With `replaces` it takes the place of a turn and of those after it, which can be restored;
    with `revert` the changes of files of these turns are reverted.
    """
    if not data.text.strip() or data.attachments or data.workspace is not None:
        # A missing session is reported first; for a plain text its host does that.
        await service.row(session_id)
    if not data.text.strip() and not data.attachments:
        raise unprocessable("The message is empty", "write a text, or attach a file")
    workspace = None if data.workspace is None else await service.folder(data.workspace)
    command = cm.SendMessage(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        text=data.text,
        mode=data.mode,
        turn_id=data.turn_id,
        attachments=await service.attachments(session_id, data.attachments),
        workspace=workspace,
        key=data.key or idempotency_key,
        wait=data.wait,
        replaces=data.replaces,
        revert=data.revert,
    )
    with refusals_as_conflicts() if data.replaces is not None else nullcontext():
        sent = await service.send(command)
    return schemas.Accepted(sent.message_id, sent.turn_id, sent.seq)


@patch("/api/sessions/{session_id:str}/messages/{message_id:str}")
async def change_message(
    service: TheService,
    caller: TheCaller,
    session_id: SessionId,
    message_id: MessageId,
    data: JSONBody[schemas.MessageChanges],
) -> schemas.Changed:
    """Change or reorder a message that waits."""
    await service.row(session_id)
    workspace, attachments = data.workspace, data.attachments
    changed = await service.do(
        cm.ChangeMessage(
            command_id=service.new_id(),
            session_id=session_id,
            by=caller.name,
            message_id=message_id,
            text=data.text,
            mode=data.mode,
            workspace=await service.folder(workspace) if isinstance(workspace, str) else UNSET,
            before=data.before,
            attachments=await service.attachments(session_id, attachments)
            if isinstance(attachments, tuple)
            else UNSET,
        )
    )
    if not changed:
        raise conflict(
            "This message can no longer be changed: it was delivered or withdrawn",
            "the session's queue shows which messages still wait",
        )
    return schemas.Changed(changed=True)


@delete("/api/sessions/{session_id:str}/messages/{message_id:str}", status_code=200)
async def withdraw_message(
    service: TheService, caller: TheCaller, session_id: SessionId, message_id: MessageId
) -> schemas.Withdrawn:
    """Take back a message that waits; false if it was delivered."""
    command = cm.WithdrawMessage(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        message_id=message_id,
    )
    return schemas.Withdrawn(await service.do(command))


@put("/api/sessions/{session_id:str}/draft", status_code=204)
async def keep_draft(
    service: TheService, caller: TheCaller, session_id: SessionId, data: JSONBody[schemas.DraftBody]
) -> None:
    """Store what a person is typing, so that any screen can continue it."""
    await service.row(session_id)
    command = cm.SetDraft(
        command_id=service.new_id(),
        session_id=session_id,
        by=caller.name,
        text=data.text,
        attachments=await service.attachments(session_id, data.attachments),
    )
    await service.do(command)


ROUTES = (send_message, change_message, withdraw_message, keep_draft)
