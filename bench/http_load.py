"""Load one HTTP endpoint with POSTs, at a fraction of what the server spends on answering them.

    python -m bench.http_load --url http://127.0.0.1:8000/api/v1/workspaces/default/jobs \\
        --token KEY [--jobs-a-request 100] [--body JSON] [--seconds 5] [--connections 32]

Each connection sends its next request when the last one is answered (HTTP/1.1 keep-alive). The
requests are bytes made beforehand, apart from the counter that makes every job's body distinct.
`@N@` in the body of one job is replaced by that counter. More than one job a request are sent as
`{"jobs": [...]}`. Any answer outside 2xx is counted, and makes the result unusable.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import urlsplit

import uvloop

from bench.pinning import OTHER_CORE, pin

BODY = (
    '{"job_type": "noop", "inputs": {"n": "@N@"}, "priority": "normal",'
    ' "document_revision_id": "bench-@N@"}'
)
COUNTER_DIGITS = 10
LATENCIES_MAX = 1_000_000
LATENCIES_REPORTED_MAX = 2_000  # they fit into a pipe that is not read yet
CONNECT_SECONDS_MAX = 10


@dataclass(frozen=True)
class Load:
    """What to send, and for how long. The warm-up before it is not counted."""

    url: str
    token: str = ""
    body: str = BODY
    jobs_a_request: int = 1
    connections: int = 32
    seconds: float = 5.0
    warm_up_seconds: float = 1.0


@dataclass
class Outcome:
    """What came back while the load was on."""

    seconds: float = 0.0
    jobs_a_request: int = 1
    statuses: Counter[int] = field(default_factory=Counter)
    latencies_seconds: list[float] = field(default_factory=list)
    broken_connections: int = 0

    @property
    def requests(self) -> int:
        return self.statuses.total()

    @property
    def refused(self) -> int:
        return sum(times for status, times in self.statuses.items() if not 200 <= status < 300)

    def percentile_ms(self, percent: float) -> float:
        ordered = sorted(self.latencies_seconds)
        place = min(len(ordered) - 1, math.ceil(len(ordered) * percent / 100))
        return ordered[place] * 1000 if ordered else math.nan

    def as_json(self) -> str:
        step = max(1, math.ceil(len(self.latencies_seconds) / LATENCIES_REPORTED_MAX))
        return json.dumps({**vars(self), "latencies_seconds": self.latencies_seconds[::step]})

    def summary(self) -> str:
        rate = self.requests / self.seconds
        return (
            f"{rate:,.0f} requests/s, {rate * self.jobs_a_request:,.0f} jobs/s, "
            f"p50 {self.percentile_ms(50):.2f} ms, p99 {self.percentile_ms(99):.2f} ms, "
            f"statuses {dict(self.statuses)}, {self.broken_connections} broken connections"
        )


class Requests:
    """Make the bytes of one request after another; only the counters differ."""

    def __init__(self, load: Load) -> None:
        many = load.jobs_a_request > 1
        body = (
            f'{{"jobs": [{", ".join([load.body] * load.jobs_a_request)}]}}' if many else load.body
        )
        self._numbers_a_job = load.body.count("@N@")
        self._jobs = load.jobs_a_request
        self._serial = 0
        template = body.replace("%", "%%").replace("@N@", f"%0{COUNTER_DIGITS}d")
        length = len((template % self._numbers()).encode())
        parts = urlsplit(load.url)
        head = (
            f"POST {parts.path} HTTP/1.1\r\nHost: {parts.netloc}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {length}\r\n"
        )
        if load.token:
            head += f"Authorization: Bearer {load.token}\r\n"
        self._template = (head.replace("%", "%%") + "\r\n" + template).encode()

    def next(self) -> bytes:
        return self._template % self._numbers()

    def _numbers(self) -> tuple[int, ...]:
        first = self._serial + 1
        self._serial += self._jobs
        serials = range(first, first + self._jobs)
        return tuple(n for n in serials for _ in range(self._numbers_a_job))


class Connection(asyncio.Protocol):
    """Send, wait for the whole answer, record it, send again."""

    def __init__(self, requests: Requests, outcome: Outcome, over: asyncio.Event) -> None:
        self._requests, self._outcome, self._over = requests, outcome, over
        self._answer = b""
        self._began = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one in all but name
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._requests.next())

    def data_received(self, data: bytes) -> None:
        self._answer += data
        head, separator, rest = self._answer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0]
        if not length:
            self._transport.close()  # chunked answers are not understood: a broken connection
        elif len(rest) >= int(length):
            self._answer = b""
            self._record(int(head[9:12]))

    def _record(self, status: int) -> None:
        if self._over.is_set():
            self._transport.close()
            return
        self._outcome.statuses[status] += 1
        if len(self._outcome.latencies_seconds) < LATENCIES_MAX:
            self._outcome.latencies_seconds.append(time.perf_counter() - self._began)
        self._send()

    def connection_lost(self, error: Exception | None) -> None:
        if not self._over.is_set():
            self._outcome.broken_connections += 1


async def apply(load: Load) -> Outcome:
    """Keep the load on for its time; what the warm-up brought is thrown away."""
    loop = asyncio.get_running_loop()
    requests, outcome, over = (
        Requests(load),
        Outcome(jobs_a_request=load.jobs_a_request),
        asyncio.Event(),
    )
    parts = urlsplit(load.url)
    transports = []
    async with asyncio.timeout(CONNECT_SECONDS_MAX):
        for _ in range(load.connections):
            transport, _protocol = await loop.create_connection(
                lambda: Connection(requests, outcome, over), parts.hostname or "", parts.port or 80
            )
            transports.append(transport)
    await asyncio.sleep(load.warm_up_seconds)
    outcome.statuses.clear()
    outcome.latencies_seconds.clear()
    began = time.perf_counter()
    await asyncio.sleep(load.seconds)
    outcome.seconds = time.perf_counter() - began
    over.set()
    for transport in transports:
        transport.close()
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.http_load", description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--body", default=BODY)
    parser.add_argument("--jobs-a-request", type=int, default=1)
    parser.add_argument("--connections", type=int, default=32)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--warm-up-seconds", type=float, default=1.0)
    parser.add_argument("--json", action="store_true", help="print everything as one line of JSON")
    options = vars(parser.parse_args())
    as_json = options.pop("json")
    pin(OTHER_CORE)
    outcome = uvloop.run(apply(Load(**options)))
    print(outcome.as_json() if as_json else outcome.summary())
    sys.exit(1 if outcome.refused or not outcome.requests else 0)


if __name__ == "__main__":
    main()
