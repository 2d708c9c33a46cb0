"""Pages that must not be reached, never end, or are not what they seem: each has a reason."""

from __future__ import annotations

import asyncio
import gzip
import zlib

import pytest
from aiohttp import web

from keryx.tools.web.decoding import decoder_for
from keryx.tools.web.fetching import FetchLimits
from tests.tools.web.web_session import Handler, Names, WebSession, article, serving

pytestmark = pytest.mark.promise("kit.1")

SMALL = FetchLimits(size=100_000, seconds=20.0, idle_seconds=10.0)


def redirecting(location: str, status: int = 302) -> Handler:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status, headers={"Location": location})

    return answer


def answering(body: bytes, content_type: str = "text/html", **headers: str) -> Handler:
    async def answer(request: web.BaseRequest) -> web.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(body=body, headers={"Content-Type": content_type, **named})

    return answer


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "localhost", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "0.0.0.0"),
        *("127.0.0.1.", "0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"),
        *("[::127.0.0.1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[fe80::1%25lo]", "[::1%25lo]"),
        *("169.254.169.254", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021"),
    ],
)
@pytest.mark.promise("kit.12")
async def test_a_private_address_is_not_contacted_in_any_form(host: str) -> None:
    names = Names({"localhost": ["127.0.0.1"]})
    async with serving() as site, WebSession(names=names) as session:
        site.pages["/"] = article("Secret", "Nobody may read this.")
        reason = await session.refusal(site.url(host=host))
        assert "public address" in reason or "web address" in reason
        assert site.requests == []


@pytest.mark.parametrize(
    "answers",
    [
        ["127.0.0.1"],
        ["93.184.216.34", "127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%2"],
        ["fd00::1"],
        ["169.254.169.254"],
        ["not an address"],
    ],
)
@pytest.mark.promise("kit.12")
async def test_a_name_with_one_private_address_is_not_contacted(answers: list[str]) -> None:
    names = Names({"evil.example": answers})
    async with serving() as site, WebSession(names=names) as session:
        site.pages["/"] = article("Secret", "Nobody may read this.")
        reason = await session.refusal(site.url(host="evil.example"))
        assert f"evil.example ({answers[-1]}) is not a public address" in reason
        assert site.requests == []


async def test_a_name_is_looked_up_once_for_its_check_and_its_connection() -> None:
    names = Names({"site.example": ["127.0.0.1"]})
    async with serving() as site, WebSession("site.example", names=names) as session:
        site.pages["/"] = article("Open", "Anybody may read this.")
        assert "Anybody may read this" in await session.extract(site.url(host="site.example"))
        assert names.lookups == ["site.example"]


@pytest.mark.promise("kit.12")
async def test_a_redirect_to_a_private_address_is_not_followed() -> None:
    names = Names({"site.example": ["127.0.0.1"], "evil.example": ["127.0.0.1"]})
    async with serving() as site, WebSession("site.example", names=names) as session:
        site.pages["/secret"] = article("Secret", "Nobody may read this.")
        for number, target in enumerate(
            (
                site.url("/secret"),
                site.url("/secret", host="evil.example"),
                site.url("/secret", host="[::ffff:127.0.0.1]"),
                "file:///etc/passwd",
                "ftp://127.0.0.1/",
                "gopher://127.0.0.1:70/_",
                f"//user:password@site.example:{site.port}/secret",
            )
        ):
            site.pages[f"/{number}"] = redirecting(target, status=301 + number % 2)
            url = site.url(f"/{number}", host="site.example")
            assert await session.refusal(url)
        assert "/secret" not in site.requests
        assert len(site.requests) == 7


async def test_redirects_to_allowed_pages_are_followed_relative_ones_too() -> None:
    async with serving() as site, WebSession(site.host) as session:
        site.pages["/a/one"] = redirecting("../two", 308)
        site.pages["/two"] = redirecting(site.url("/three?x=1"), 303)
        site.pages["/three"] = article("Three", "The end of the way.")
        result = (await session.nested("web_extract", urls=[site.url("/a/one")]))["results"][0]
        assert (result["final_url"], result["title"]) == (site.url("/three?x=1"), "Three")


@pytest.mark.promise("kit.12")
async def test_redirects_in_a_circle_and_without_end_are_given_up() -> None:
    async with serving() as site, WebSession(site.host) as session:
        site.pages["/a"] = redirecting("/b")
        site.pages["/b"] = redirecting("/a")
        assert "circle" in await session.refusal(site.url("/a"))
        assert site.requests == ["/a", "/b"]
        site.requests.clear()

        async def further(request: web.BaseRequest) -> web.Response:
            number = int(request.query.get("n", "0"))
            return web.Response(status=302, headers={"Location": f"/n?n={number + 1}"})

        site.pages["/n"] = further
        assert "redirects more than 10 times" in await session.refusal(site.url("/n"))
        assert len(site.requests) == 11


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "bare deflate"])
async def test_a_compressed_page_is_read(encoding: str) -> None:
    html = article("Packed", "It was compressed.").encode()
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    body = {
        "gzip": gzip.compress(html[:100]) + gzip.compress(html[100:]),
        "deflate": zlib.compress(html),
        "bare deflate": compressor.compress(html) + compressor.flush(),
    }[encoding]
    async with serving() as site, WebSession(site.host) as session:
        site.pages["/"] = answering(body, Content_Encoding=encoding.rsplit(maxsplit=1)[-1])
        assert "It was compressed" in await session.extract(site.url())


@pytest.mark.promise("kit.12")
async def test_a_gzip_bomb_is_decompressed_to_the_limit_only() -> None:
    async with serving() as site, WebSession(site.host, limits=SMALL) as session:
        head = article("Bomb", "It looks harmless.").encode()
        site.pages["/"] = answering(
            gzip.compress(head + b" " * 200_000_000, 9), Content_Encoding="gzip"
        )
        result = (await session.nested("web_extract", urls=[site.url()]))["results"][0]
        assert result["truncated"] is True
        assert "It looks harmless" in result["text"]
        assert len(result["text"]) <= SMALL.size


def test_a_decoder_gives_no_more_bytes_than_there_is_room_for() -> None:
    for compressed, encoding in (
        (gzip.compress(b" " * 50_000_000), "gzip"),
        (gzip.compress(b" " * 1_000) * 50, "gzip"),
        (zlib.compress(b" " * 50_000_000), "deflate"),
    ):
        decoder = decoder_for(encoding)
        assert decoder is not None
        assert len(decoder.feed(compressed, 10_000)) == 10_000


@pytest.mark.parametrize(
    ("body", "encoding"),
    [
        (b"this is not gzip at all", "gzip"),
        (gzip.compress(b"") * 5_000, "gzip"),
        (b"\x1b\x00\x00", "br"),
        (gzip.compress(gzip.compress(b"x")), "gzip, gzip"),
    ],
    # Compressed bytes hold the time: as names they would differ from worker to worker.
    ids=["not gzip", "many parts", "br", "twice"],
)
async def test_a_body_that_cannot_be_decompressed_has_a_reason(body: bytes, encoding: str) -> None:
    async with serving() as site, WebSession(site.host, limits=SMALL) as session:
        site.pages["/"] = answering(body, Content_Encoding=encoding)
        assert "compressed" in await session.refusal(site.url())


@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.promise("kit.12")
async def test_a_page_without_end_is_read_up_to_the_limit(compressed: bool) -> None:
    ended = asyncio.Event()

    async def endless(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        if compressed:
            response.headers["Content-Encoding"] = "gzip"
        await response.prepare(request)
        # Stored blocks without content: they go on for ever and decompress to nothing.
        head = gzip.compress(b"")[:10]
        piece = b"\x00\x00\x00\xff\xff" * 2_000 if compressed else b"word " * 2_000
        try:
            if compressed:
                await response.write(head)
            while True:
                await response.write(piece)
        finally:
            ended.set()

    async with serving() as site, WebSession(site.host, limits=SMALL) as session:
        site.pages["/"] = endless
        outcome = await session.run("web_extract", urls=[site.url()])
        assert outcome.outcome == "completed"
        assert ("the page has no text" if compressed else "longer than") in outcome.text
        await ended.wait()  # the connection was closed; nobody reads on


@pytest.mark.promise("kit.12")
async def test_a_gigabyte_that_is_announced_is_not_read() -> None:
    sent = 0

    async def huge(request: web.BaseRequest) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse(
            headers={"Content-Type": "text/plain", "Content-Length": str(1 << 30)}
        )
        await response.prepare(request)
        for _ in range(1 << 14):
            await response.write(b"x" * (1 << 16))
            sent += 1 << 16
        return response

    async with serving() as site, WebSession(site.host, limits=SMALL) as session:
        site.pages["/"] = huge
        assert "longer than" in await session.extract(site.url())
    assert sent < 1 << 26  # what fits into the buffers of the sockets


async def test_a_server_that_sends_a_byte_now_and_then_is_given_up() -> None:
    async def slow(request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/plain"})
        await response.prepare(request)
        while True:
            await response.write(b"x")
            await asyncio.sleep(0.01)

    limits = FetchLimits(seconds=0.5, idle_seconds=10.0)
    async with serving() as site, WebSession(site.host, limits=limits) as session:
        site.pages["/"] = slow
        assert "did not finish within 0.5 s" in await session.refusal(site.url())


async def test_a_server_that_sends_nothing_is_given_up() -> None:
    release = asyncio.Event()

    async def silent(request: web.BaseRequest) -> web.Response:
        await release.wait()
        return web.Response()

    limits = FetchLimits(seconds=30.0, idle_seconds=0.2)
    async with serving() as site, WebSession(site.host, limits=limits) as session:
        site.pages["/"] = silent
        assert "sent nothing for 0.2 s" in await session.refusal(site.url())
        release.set()


@pytest.mark.parametrize(
    "url",
    [
        *("", " ", "example.org", "/path", "http://", "http:///x", "http://[", "http://[::1"),
        *("file:///etc/passwd", "javascript:alert(1)", "data:text/html,x", "ws://example.org/"),
        *("http://a:b@example.org/", "http://example.org:99999/", "http://example.org:x/"),
        *("http://\x00/", "http://a b/", "http://" + "a" * 300 + "/", "http://xn--/", "http://…/"),
        *("http://.example/", "http://exa\nmple.example/", "http://\udcff/"),
    ],
)
async def test_a_text_that_is_no_web_address_is_refused_with_what_to_do(url: str) -> None:
    async with WebSession() as session:
        url = url.encode(errors="replace").decode()
        assert ";" in await session.refusal(url)


async def test_a_server_that_talks_nonsense_has_a_reason() -> None:
    nonsense = [
        b"",
        b"\x00\xff\x00\xff",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort",
        b"HTTP/1.1 999999 What\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 302 Found\r\nLocation: http://[\r\n\r\n",
    ]
    number = 0

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(nonsense[number])
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server, WebSession("127.0.0.1", limits=SMALL) as session:
        for number in range(len(nonsense)):
            assert ";" in await session.refusal(f"http://127.0.0.1:{port}/{number}")


@pytest.mark.parametrize(
    ("status", "words"), [(404, "no such page"), (403, "refuses"), (429, "later"), (500, "later")]
)
async def test_an_error_of_the_server_says_what_to_do(status: int, words: str) -> None:
    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(status=status, text="no")

    async with serving() as site, WebSession(site.host) as session:
        site.pages["/"] = answer
        reason = await session.refusal(site.url())
        assert str(status) in reason
        assert words in reason


@pytest.mark.parametrize("content_type", ["image/png", "video/mp4", "audio/mpeg", "font/woff2"])
async def test_what_holds_no_text_is_not_read(content_type: str) -> None:
    async with serving() as site, WebSession(site.host) as session:
        site.pages["/"] = answering(b"\x89PNG", content_type)
        assert content_type in await session.refusal(site.url())
