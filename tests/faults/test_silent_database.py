"""The network to PostgreSQL goes silent: connections stay open, and no byte passes.

A peer that acknowledges bytes and never answers is invisible to TCP: the deadlines are our own.
"""

import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest
from tests.databases import libpq
from tests.processes import eventually, is_alive, jobs_of, tree
from tests.proxy import Proxy, proxy_of, through
from tests.system.server import JOBS, Server, Start, echo, long_echo, starting

pytestmark = pytest.mark.postgresql
# The longest that a request may take: it waits for a group whose statement is given up, and then
# for its own connection.
ANSWER_SECONDS_MAX = 20.0
DRAIN_GRACE_SECONDS = 1
# A process ends so long after its grace, whatever hangs.
END_SECONDS_MAX = DRAIN_GRACE_SECONDS + 10.0
DOCUMENTS = JOBS.removesuffix("jobs") + "documents"
SETTINGS = {
    "ADE_DATABASE_TIMEOUT_SECONDS": "4",
    "ADE_DRAIN_GRACE_SECONDS": str(DRAIN_GRACE_SECONDS),
    "ADE_QUEUE_SIZE": "0",
}


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with proxy_of(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def start_behind_proxy(tmp_path: Path, postgres_url: str, proxy: Proxy) -> Iterator[Start]:
    url = through(postgres_url, proxy)
    with starting(tmp_path, (), ADE_DATABASE_URL=url, **SETTINGS) as start:
        yield start


def post(server: Server, body: Any, **headers: str) -> httpx.Response:
    """Submit a job on a connection of its own, and wait for the answer as long as is allowed."""
    with httpx.Client(base_url=server.url, headers=server.http.headers) as client:
        return client.post(JOBS, json=body, headers=headers, timeout=ANSWER_SECONDS_MAX)


def component(server: Server, name: str) -> str:
    """Read the health of one component."""
    found = server.http.get("/api/v1/health").json()["components"]
    return str(next(one["status"] for one in found if one["name"] == name))


def ends_in_time(server: Server, children: set[int]) -> int:
    """Send SIGTERM and check that the process ends in time, and its children with it."""
    server.signal(signal.SIGTERM)
    code = server.ended(END_SECONDS_MAX)
    eventually(lambda: not any(map(is_alive, children)), 5)
    return code


def test_half_open_connections_are_given_up_and_replaced(
    start_behind_proxy: Start, proxy: Proxy
) -> None:
    server = start_behind_proxy.server()
    running = server.submit(**long_echo(8))
    server.running_job(running)
    proxy.silence_existing()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: post(server, echo(value=n)), range(8)))
    assert {answer.status_code for answer in answers} == {202}
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    for answer in answers:
        assert server.ended_job(answer.json())["status"] == "succeeded"
    # The writer is replaced before the lease of a job that runs is lost.
    found = server.ended_job(running)
    assert (found["status"], found["attempt"]) == ("succeeded", 1)
    assert ends_in_time(server, tree(server.pid)) == 0


def test_a_silent_database_is_reported_until_a_write_works(
    start_behind_proxy: Start, proxy: Proxy
) -> None:
    server = start_behind_proxy.server()
    job = server.submit(**long_echo(1))
    proxy.silence_all()
    for _ in range(2):
        with ThreadPoolExecutor(20) as pool:
            answers = list(pool.map(lambda n: post(server, echo(value=n)), range(20)))
        assert {answer.status_code for answer in answers} == {503}
        assert {answer.json()["code"] for answer in answers} == {"unavailable"}
        assert server.http.get(JOBS, timeout=ANSWER_SECONDS_MAX).status_code == 503
    began = time.monotonic()
    assert server.http.get("/readyz").status_code == 503
    assert server.http.get("/api/v1/health").json()["status"] == "down"
    assert time.monotonic() - began < 12
    eventually(lambda: component(server, "notifications") == "degraded")
    began = time.monotonic()
    assert server.http.get("/healthz").status_code == 200
    assert time.monotonic() - began < 1
    proxy.restore()
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    # A connection that was begun before may still fail, and the request that waits for it.
    eventually(lambda: server.http.get(job["links"]["self"]).json().get("status") == "succeeded")
    assert server.ended_job(server.submit(value="after"))["status"] == "succeeded"


def test_readiness_asks_the_writer(
    start_behind_proxy: Start, proxy: Proxy, postgres_url: str
) -> None:
    server = start_behind_proxy.server()
    assert server.http.get("/readyz").status_code == 200
    name = psycopg.conninfo.conninfo_to_dict(libpq(postgres_url))["dbname"]
    with psycopg.connect(libpq(postgres_url), autocommit=True) as admin:
        # As on a server that became a standby: it can be read.
        admin.execute(f'ALTER DATABASE "{name}" SET default_transaction_read_only = on'.encode())
        proxy.reset()
        eventually(lambda: server.http.get("/readyz").status_code == 503)
        assert post(server, echo(value=1)).status_code == 503
        admin.execute(f'ALTER DATABASE "{name}" RESET default_transaction_read_only'.encode())
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    server.submit(value=2)


@pytest.mark.parametrize("fault", ["silence_existing", "silence_all", "refuse"])
def test_a_process_ends_in_time_whatever_hangs(
    start_behind_proxy: Start, proxy: Proxy, fault: str
) -> None:
    server = start_behind_proxy.server()
    job = server.submit(**long_echo(600))
    server.running_job(job)
    children = tree(server.pid)
    assert jobs_of(server.pid)
    getattr(proxy, fault)()
    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(post, server, echo(value=n)) for n in range(2)]
        asked.append(pool.submit(server.http.get, JOBS))
        ends_in_time(server, children)
        for future in asked:
            if not future.exception():
                assert future.result().status_code in (202, 200, 503)


def test_an_idle_worker_ends_in_time_too(start_behind_proxy: Start, proxy: Proxy) -> None:
    worker = start_behind_proxy.worker()
    proxy.silence_all()
    worker.said('"cannot (claim|sweep)"')
    worker.signal(signal.SIGTERM)
    worker.ended(END_SECONDS_MAX)


def test_a_submission_whose_commit_is_not_acknowledged_is_not_denied(
    start_behind_proxy: Start, proxy: Proxy
) -> None:
    server = start_behind_proxy.server()
    body, key = echo(value="once"), {"Idempotency-Key": "once"}
    post(server, echo(value="before"))
    proxy.lose_answer_after(b"once")  # the submission itself: nothing took place yet
    assert post(server, body, **key).status_code == 202
    again = post(server, body, **key)
    assert again.headers["idempotency-replayed"] == "true"

    body, key = echo(value="twice"), {"Idempotency-Key": "twice"}
    answers = []
    for _ in range(200):  # other transactions of the process commit as well
        proxy.lose_answer_after(b"COMMIT")
        answers.append(post(server, body, **key))
        if answers[-1].status_code == 503:
            break
        body, key = echo(value="twice"), {"Idempotency-Key": f"twice {len(answers)}"}
    unknown = answers[-1]
    assert unknown.status_code == 503, "no commit of a submission was hit"
    assert "unknown" in unknown.json()["detail"]
    replayed = post(server, body, **key)
    assert replayed.headers.get("idempotency-replayed") == "true"


def test_an_upload_whose_commit_is_not_acknowledged_took_place(
    start_behind_proxy: Start, proxy: Proxy
) -> None:
    server = start_behind_proxy.server(ADE_POLL_SECONDS=60, ADE_SWEEP_SECONDS=60)
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    proxy.lose_answer_after(b"COMMIT")
    made = server.http.post(DOCUMENTS, files={"file": ("a.csv", b"a,b\n1,2\n")})
    assert made.status_code == 201, made.text
    assert len(server.http.get(DOCUMENTS).json()["items"]) == 1


def test_a_slow_network_delays_and_one_that_is_too_slow_is_reported(
    start_behind_proxy: Start, proxy: Proxy
) -> None:
    server = start_behind_proxy.server()
    proxy.delay_seconds = 0.05
    assert server.ended_job(server.submit(value="slow"))["status"] == "succeeded"
    assert server.http.get("/readyz").status_code == 200
    proxy.delay_seconds = 30
    assert post(server, echo(value=1)).status_code == 503
    proxy.restore()
    proxy.reset()
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    assert server.ended_job(server.submit(value="after"))["status"] == "succeeded"
