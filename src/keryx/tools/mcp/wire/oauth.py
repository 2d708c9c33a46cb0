"""Logs in to a server that wants OAuth: a person opens an address, and is sent back to this host.

The address goes to the person through the session. A listener on the loopback waits for the answer.
Tokens are stored in the home, readable by their owner only.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import msgspec
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl, ValidationError

from keryx.decoding import decode_json
from keryx.tools.mcp.settings import LoginSettings
from keryx.tools.mcp.stored import write_private

LOGIN_PATIENCE: Final = 600.0
"""Seconds that a person has to log in."""
LARGEST_FILE: Final = 256 * 1024
LONGEST_REQUEST: Final = 16 * 1024
CALLBACK: Final = "/callback"
_PAGE: Final = (
    "<!doctype html><title>Keryx</title><p>You are logged in. You can close this page.</p>"
)

InThread = Callable[..., Awaitable[Any]]
OnLogin = Callable[[str | None], None]


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a login file."""

    url: str
    """The server that it belongs to: no other one gets its tokens."""
    port: int
    """The port of the listener; authorization servers may accept only the registered one."""
    tokens: dict[str, Any] | None = None
    client: dict[str, Any] | None = None


class LoginFile:
    """The tokens of one server. The interface is that of the package's `TokenStorage`."""

    def __init__(
        self,
        path: Path,
        login: Login,
        in_thread: InThread,
        client: OAuthClientInformationFull | None = None,
    ) -> None:
        """`client` was registered by hand; None: Keryx registers itself."""
        self._path = path
        self._in_thread = in_thread
        self._client = client
        self.login = login

    async def get_tokens(self) -> OAuthToken | None:
        return _checked(OAuthToken, self.login.tokens)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        await self._store(tokens=tokens.model_dump(mode="json", exclude_none=True))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client or _checked(OAuthClientInformationFull, self.login.client)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        await self._store(client=client_info.model_dump(mode="json", exclude_none=True))

    async def _store(self, **changes: Any) -> None:
        self.login = msgspec.structs.replace(self.login, **changes)
        await self._in_thread(write_private, self._path, msgspec.json.encode(self.login))


async def oauth_provider(
    url: str, path: Path, in_thread: InThread, on_login: OnLogin, who: LoginSettings
) -> OAuthClientProvider:
    """Return the authentication for requests to that server. It does nothing until a 401."""
    login: Login = await in_thread(_read, path, url)
    redirect = AnyUrl(f"http://127.0.0.1:{login.port}{CALLBACK}")
    client = None
    if who.client_id is not None:
        client = OAuthClientInformationFull(
            client_id=who.client_id,
            client_secret=who.client_secret,
            redirect_uris=[redirect],
            token_endpoint_auth_method="client_secret_basic" if who.client_secret else "none",
        )
    storage = LoginFile(path, login, in_thread, client)
    if not who.person:
        assert who.client_id is not None
        assert who.client_secret is not None, "the settings were checked"
        return ClientCredentialsOAuthProvider(url, storage, who.client_id, who.client_secret)
    listener = Listener(login.port)

    async def redirected(address: str) -> None:
        if not address.startswith(("http://", "https://")):
            raise OAuthFlowError(f"the address for the login is no web address: {address[:80]!r}")
        await listener.start()
        on_login(address)

    async def answered() -> AuthorizationCodeResult:
        try:
            return await listener.wait()
        finally:
            on_login(None)

    return OAuthClientProvider(
        server_url=url,
        client_metadata=OAuthClientMetadata(
            client_name="Keryx",
            redirect_uris=[redirect],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=storage,
        redirect_handler=redirected,
        callback_handler=answered,
        client_metadata_url=who.metadata_url,
    )


class Listener:
    """Waits on the loopback for the browser that comes back from a login."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._result: asyncio.Future[AuthorizationCodeResult | str] | None = None

    async def start(self) -> None:
        self._result = asyncio.get_running_loop().create_future()
        try:
            self._server = await asyncio.start_server(
                self._serve, "127.0.0.1", self._port, limit=LONGEST_REQUEST
            )
        except OSError as error:
            raise OAuthFlowError(
                f"the login cannot be received on port {self._port}: {error}; "
                "end the program that uses it, and try again"
            ) from error

    async def wait(self) -> AuthorizationCodeResult:
        """Return what the authorization server sent back; `OAuthFlowError` if that is an error."""
        assert self._result is not None
        assert self._server is not None
        try:
            async with asyncio.timeout(LOGIN_PATIENCE):
                result = await self._result
        except TimeoutError:
            raise OAuthFlowError("nobody logged in") from None
        finally:
            self._server.close()
        if isinstance(result, str):
            raise OAuthFlowError(f"the login was refused: {result}")
        return result

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(10):
                head = await reader.readuntil(b"\r\n\r\n")
            status, text = self._answer(head.split(b"\r\n", 1)[0].decode(errors="replace"))
            body = text.encode()
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: text/html; charset=utf-8\r\n"
                f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            return  # no browser, or one that went away
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def _answer(self, request_line: str) -> tuple[str, str]:
        method, _, rest = request_line.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        fields = {name: values[0] for name, values in parse_qs(target.query).items()}
        is_login = method == "GET" and target.path == CALLBACK
        if self._result is None or not is_login or not fields.keys() & {"code", "error"}:
            return "404 Not Found", "not found"
        if not self._result.done():
            error = fields.get("error")
            self._result.set_result(
                fields.get("error_description") or error
                if error
                else AuthorizationCodeResult(
                    code=fields["code"], state=fields.get("state"), iss=fields.get("iss")
                )
            )
        return "200 OK", _PAGE


def _read(path: Path, url: str) -> Login:
    """Return the stored login of that server, or a new one with a free port. Reads the disk."""
    with contextlib.suppress(OSError, msgspec.DecodeError, RecursionError):
        with path.open("rb") as file:
            login = decode_json(file.read(LARGEST_FILE), Login)
        if login.url == url and 1024 <= login.port < 65536:  # noqa: PLR2004 (ports of users)
            return login
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return Login(url=url, port=probe.getsockname()[1])


def _checked(kind: Any, fields: dict[str, Any] | None) -> Any:
    """Return the stored value, or None if there is none that can be used."""
    try:
        return None if fields is None else kind.model_validate(fields)
    except ValidationError:
        return None
