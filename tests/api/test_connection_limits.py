"""What a client without a key can make the server hold: heads, bodies, connections, time."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.api.server import JOBS, KEY, Server, echo
from tests.processes import aeventually

from ade.http.client_address import LOOPBACK, Networks
from ade.process.connection_limits import HEAD_BYTES_MAX, HEADERS_MAX, URL_BYTES_MAX
from ade.telemetry import metrics

FAST: dict[str, Any] = {"look_seconds": 0.05}
ENDS_SECONDS = 10.0
GET = b"GET / HTTP/1.1\r\nHost: ade\r\n"
SUBMISSION = json.dumps(echo()).encode()


class Client:
    """Send bytes as no HTTP library would, and read what comes back until the end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, data: bytes) -> None:
        """Send bytes; a server that no longer listens is what the tests wait for."""
        with contextlib.suppress(ConnectionError):
            self._writer.write(data)
            await self._writer.drain()

    async def answer(self) -> tuple[int, dict[str, Any]]:
        """Read one answer of known length."""
        async with asyncio.timeout(ENDS_SECONDS):
            head = await self._reader.readuntil(b"\r\n\r\n")
            fields = dict(line.split(b": ", 1) for line in head.splitlines()[1:] if line)
            body = await self._reader.readexactly(int(fields[b"content-length"]))
        return int(head.split()[1]), json.loads(body)

    async def end(self) -> bytes:
        """Read until the server closes the connection; fail if it does not."""
        async with asyncio.timeout(ENDS_SECONDS):
            with contextlib.suppress(ConnectionError):
                return await self._reader.read()
            return b""

    def close(self) -> None:
        self._writer.close()


@contextlib.asynccontextmanager
async def client(url: str) -> AsyncIterator[Client]:
    parts = urlsplit(url)
    connected = Client(*await asyncio.open_connection(parts.hostname, parts.port))
    try:
        yield connected
    finally:
        connected.close()


async def refusal(url: str, *pieces: bytes) -> tuple[int, str]:
    """Send pieces; return status and code of the problem that ends the connection."""
    async with client(url) as sending:
        for piece in pieces:
            await sending.send(piece)
        status, problem = await sending.answer()
        assert await sending.end() == b""
    return status, problem["code"]


async def test_an_ordinary_request_is_served(standing: Server) -> None:
    async with standing.on_the_wire() as url, client(url) as one:
        for _ in range(2):  # the connection is kept
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200


async def test_headers_are_limited_in_bytes(standing: Server) -> None:
    async with standing.on_the_wire() as url:
        long = b"X-Long: " + b"x" * HEAD_BYTES_MAX + b"\r\n"
        assert await refusal(url, GET + long + b"\r\n") == (431, "head_too_large")


async def test_a_head_without_an_end_is_refused_while_it_grows(standing: Server) -> None:
    async with standing.on_the_wire() as url:
        pieces = [b"x" * 4096] * 100
        assert await refusal(url, GET, b"X-Long: ", *pieces) == (431, "head_too_large")


async def test_headers_are_limited_in_number(standing: Server) -> None:
    async with standing.on_the_wire() as url:
        many = b"".join(b"X-%d: 1\r\n" % number for number in range(HEADERS_MAX))
        assert await refusal(url, GET + many + b"\r\n") == (431, "head_too_large")


async def test_a_url_is_limited(standing: Server) -> None:
    async with standing.on_the_wire() as url:
        long = b"GET /" + b"a" * URL_BYTES_MAX
        assert await refusal(url, long + b" HTTP/1.1\r\n\r\n") == (414, "url_too_long")
        assert await refusal(url, long) == (414, "url_too_long")


async def test_trailers_are_limited(standing: Server) -> None:
    head = f"POST {JOBS} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n".encode()
    head += f"Authorization: Bearer {KEY}\r\n\r\n".encode()
    async with standing.on_the_wire() as url:
        endless = [b"1\r\n{\r\n", b"0\r\nX-Long: "] + [b"x" * 4096] * 200
        assert await refusal(url, head, *endless) == (431, "head_too_large")
    async with standing.on_the_wire() as url, client(url) as one:
        many = b"".join(b"X-%d: 1\r\n" % number for number in range(HEADERS_MAX))
        await one.send(head + b"1\r\n{\r\n0\r\n" + many + b"\r\n")
        assert b"HTTP/1.1 431" in await one.end()


async def test_bytes_that_are_not_http_get_a_problem(standing: Server) -> None:
    async with standing.on_the_wire() as url:
        assert await refusal(url, b"\x16\x03\x01 hello\r\n\r\n") == (400, "bad_request")


async def test_a_half_sent_head_ends_after_its_time(standing: Server) -> None:
    async with standing.on_the_wire(head_seconds=0.2, **FAST) as url:
        assert await refusal(url, GET) == (408, "request_timeout")


async def test_a_head_that_drips_ends_after_its_time(standing: Server) -> None:
    async with standing.on_the_wire(head_seconds=0.2, **FAST) as url, client(url) as slow:
        answer = asyncio.create_task(slow.answer())
        await slow.send(GET)
        while not answer.done():
            await slow.send(b"X-Drip: 1\r\n")
            await asyncio.wait([answer], timeout=0.02)
        assert (await answer)[0] == 408


async def test_a_connection_on_which_nothing_is_sent_is_closed(standing: Server) -> None:
    async with standing.on_the_wire(head_seconds=0.2, **FAST) as url, client(url) as silent:
        assert await silent.end() == b""


@pytest.mark.parametrize("sent", [b"", b"\r\n"])
async def test_an_idle_connection_is_closed(standing: Server, sent: bytes) -> None:
    async with standing.on_the_wire(idle_seconds=0.2, **FAST) as url, client(url) as idle:
        await idle.send(GET + b"\r\n")
        assert (await idle.answer())[0] == 200
        await idle.send(sent)
        assert await idle.end() == b""


async def test_a_body_that_stalls_ends(standing: Server) -> None:
    head = f"POST {JOBS} HTTP/1.1\r\nHost: a\r\nContent-Length: 500\r\n".encode()
    head += f"Authorization: Bearer {KEY}\r\n\r\n".encode()
    async with standing.on_the_wire(stall_seconds=0.2, **FAST) as url:
        assert await refusal(url, head, b"{") == (408, "request_timeout")


async def test_the_rest_of_a_body_that_was_answered_early_may_not_go_on(standing: Server) -> None:
    head = f"POST {JOBS} HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n".encode()
    async with standing.on_the_wire(head_seconds=0.3, **FAST) as url, client(url) as flood:
        await flood.send(head)
        assert (await flood.answer())[0] == 401
        ended = asyncio.create_task(flood.end())
        while not ended.done():
            await flood.send(b"x" * 4096)
            await asyncio.wait([ended], timeout=0.02)


async def test_a_slow_but_steady_body_arrives(standing: Server) -> None:
    body = SUBMISSION + b" " * 20_000
    head = f"POST {JOBS} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n".encode()
    head += f"Authorization: Bearer {KEY}\r\n\r\n".encode()
    async with standing.on_the_wire(stall_seconds=0.3, **FAST) as url, client(url) as slow:
        answer = asyncio.create_task(slow.answer())
        await slow.send(head)
        for start in range(0, len(body), 2048):
            await slow.send(body[start : start + 2048])
            await asyncio.wait([answer], timeout=0.05)
        assert (await answer)[0] == 202


def cut_off() -> float:
    """Count the clients that did not read their answers."""
    labels = {"limit": "unread"}
    return metrics.REGISTRY.get_sample_value("ade_connections_refused_total", labels) or 0


async def test_a_client_that_does_not_read_its_answer_is_cut_off(
    standing: Server, monkeypatch: pytest.MonkeyPatch
) -> None:

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while not over.is_set():
            await send({"type": "http.response.body", "body": bytes(65536), "more_body": True})
            await asyncio.sleep(0)  # to a client that is gone nothing is sent, without a wait

    over = asyncio.Event()
    monkeypatch.setattr(standing, "app", endless)
    before = cut_off()
    async with standing.on_the_wire(stall_seconds=0.3, **FAST) as url, client(url) as deaf:
        await deaf.send(GET + b"\r\n")
        await aeventually(lambda: cut_off() > before)
        over.set()


async def test_a_client_that_reads_slowly_gets_all_of_its_answer(
    standing: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two moments in which the kernel takes more, it sends what it has: minutes of it."""

    async def large(scope: Any, receive: Any, send: Any) -> None:
        length = (b"content-length", b"%d" % size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": bytes(size)})

    size = 12 * 1024 * 1024
    monkeypatch.setattr(standing, "app", large)
    before = cut_off()
    async with standing.on_the_wire(stall_seconds=0.5, **FAST) as url:
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=4096)
        writer.write(GET + b"\r\n")
        read = 0
        while read < size:
            read += len(await asyncio.wait_for(reader.read(32 * 1024), ENDS_SECONDS))
            if read < 3 * 1024 * 1024:
                await asyncio.sleep(0.02)
            assert cut_off() == before, f"after {read} bytes"
        writer.close()


async def test_connections_are_limited_by_address(standing: Server) -> None:
    async with standing.on_the_wire(per_address_max=3) as url, contextlib.AsyncExitStack() as stack:
        first = [await stack.enter_async_context(client(url)) for _ in range(3)]
        for one in first:  # each was accepted before the next came
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200
        fourth = await stack.enter_async_context(client(url))
        status, problem = await fourth.answer()
        assert (status, problem["code"]) == (503, "unavailable")
        assert await fourth.end() == b""
        first[0].close()

        async def has_room() -> bool:
            async with client(url) as again:
                await again.send(GET + b"\r\n")
                return (await again.answer())[0] == 200

        await aeventually(has_room)


@pytest.mark.parametrize(("uncounted", "accepted"), [((), 2), (LOOPBACK, 3)])
async def test_connections_are_limited_in_total(
    standing: Server, uncounted: tuple[str, ...], accepted: int
) -> None:
    rules = {"connections_max": 2, "reserved": 1, "uncounted": Networks(uncounted)}
    async with standing.on_the_wire(**rules) as url, contextlib.AsyncExitStack() as stack:
        for _ in range(accepted):  # this machine has no limit of its own, and a reserve
            one = await stack.enter_async_context(client(url))
            await one.send(GET + b"\r\n")
            assert (await one.answer())[0] == 200
        further = await stack.enter_async_context(client(url))
        assert (await further.answer())[0] == 503


async def test_requests_that_wait_on_one_connection_are_limited(standing: Server) -> None:
    async with standing.on_the_wire() as url, client(url) as impatient:
        await impatient.send((GET + b"\r\n") * 2000)
        assert (await impatient.end()).count(b"HTTP/1.1 200") <= 200


async def test_a_request_that_waited_behind_another_is_not_idle(standing: Server) -> None:
    head = f"POST {JOBS} HTTP/1.1\r\nHost: ade\r\nAuthorization: Bearer {KEY}\r\nPrefer: wait=2\r\n"
    kind = f"Content-Type: application/json\r\nContent-Length: {len(SUBMISSION)}\r\n\r\n"
    async with standing.on_the_wire(idle_seconds=0.3, **FAST) as url, client(url) as one:
        await one.send(GET + b"\r\n" + (head + kind).encode() + SUBMISSION)
        assert (await one.answer())[0] == 200
        assert (await one.answer())[0] == 202  # nobody runs the job: it is awaited for 2 s


async def test_a_wish_to_upgrade_is_ignored(standing: Server) -> None:
    wish = b"Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    async with standing.on_the_wire() as url, client(url) as one:
        await one.send(GET + wish)
        assert (await one.answer())[0] == 200
        assert await one.end() == b""
