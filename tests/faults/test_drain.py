"""A server is shut down while clients wait for answers: each gets a correct one."""

import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
from tests.processes import eventually
from tests.system.server import JOBS, KEY, Server, Start, echo, long_echo

KEYED = {"Prefer": "wait=60", "Idempotency-Key": "once"}


def _post(server: Server, path: str, body: Any, headers: dict[str, str]) -> httpx.Response:
    with httpx.Client(base_url=server.url, headers=server.http.headers, timeout=30) as client:
        return client.post(path, json=body, headers=headers)


def test_a_waiting_client_gets_the_location_of_its_job(start: Start) -> None:
    server = start.server(ADE_MAX_CONCURRENCY=1, ADE_DRAIN_GRACE_SECONDS=20)
    running, waiting = echo(**long_echo(6)), echo(value="waiting")
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(_post, server, JOBS, running, KEYED)]
        eventually(lambda: server.http.get(JOBS, params={"status": "running"}).json()["items"])
        asked.append(pool.submit(_post, server, JOBS, waiting, {"Prefer": "wait=60"}))
        on_target = f"{JOBS.removesuffix('jobs')}targets/lamp/jobs"
        asked.append(pool.submit(_post, server, on_target, echo(value=3), {"Prefer": "wait=60"}))
        eventually(lambda: len(server.http.get(JOBS).json()["items"]) == 3)
        server.signal(signal.SIGTERM)
        answers = [future.result(10) for future in asked]
    for answer in answers:
        assert answer.status_code == 202, answer.text
        assert answer.headers["location"] == answer.json()["links"]["self"]
        assert "preference-applied" not in answer.headers
    assert server.ended() == 0
    again = start.server()
    for answer in answers:
        assert again.ended_job(answer.json())["status"] == "succeeded"
    repeated = _post(again, JOBS, running, KEYED)
    assert repeated.headers["idempotency-replayed"] == "true"
    assert repeated.content == answers[0].content


def test_a_request_that_never_completes_gets_a_problem(start: Start) -> None:
    server = start.server()
    url = httpx.URL(server.url)
    half_sent: list[socket.socket] = []
    for path in (JOBS, JOBS.removesuffix("jobs") + "members"):
        head = (
            f"POST {path} HTTP/1.1\r\nHost: ade\r\nAuthorization: Bearer {KEY}\r\n"
            "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
        )
        connection = socket.create_connection((url.host, url.port), 30)
        connection.sendall(head.encode())
        half_sent.append(connection)
    for _ in range(2):  # what came before these has been read
        httpx.get(f"{server.url}/healthz")
    server.signal(signal.SIGTERM)
    for connection in half_sent:
        with connection, connection.makefile("rb") as stream:
            answer = stream.read()
        top, _, body = answer.partition(b"\r\n\r\n")
        assert top.startswith(b"HTTP/1.1 503 "), answer
        assert b"application/problem+json" in top
        assert json.loads(body)["code"] == "unavailable"
    assert server.ended() == 0
