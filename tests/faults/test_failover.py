"""PostgreSQL is restarted and fails over while jobs are submitted and run: nothing is lost."""

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.faults.postgres import Postgres
from tests.processes import eventually
from tests.proxy import Proxy, address_of, through
from tests.system.server import JOBS, Server, Start, echo, starting

pytestmark = pytest.mark.postgresql
SETTINGS = {"ADE_QUEUE_SIZE": "0", "ADE_DATABASE_TIMEOUT_SECONDS": "4"}
SUBMISSIONS_BETWEEN_FAULTS = 5


class Submitting:
    """Submit small jobs one after the other, and keep those that were acknowledged."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ends = threading.Event()
        self.accepted: list[dict[str, Any]] = []
        self.statuses: set[int] = set()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        for number in itertools.count():
            if self._ends.is_set():
                return
            answer = self._server.http.post(JOBS, json=echo(value=number), timeout=30)
            self.statuses.add(answer.status_code)
            if answer.status_code == 202:
                self.accepted.append(answer.json())

    def more(self) -> None:
        """Wait until a few more were accepted."""
        wanted = len(self.accepted) + SUBMISSIONS_BETWEEN_FAULTS
        eventually(lambda: len(self.accepted) >= wanted, 40)

    def end(self) -> None:
        """Stop submitting."""
        self._ends.set()
        self._thread.join(60)


@contextmanager
def submitting(server: Server) -> Iterator[Submitting]:
    """Submit while inside; at the end, every job that was acknowledged must succeed."""
    submitting = Submitting(server)
    submitting._thread.start()
    try:
        submitting.more()
        yield submitting
        submitting.more()
    finally:
        submitting.end()
    assert submitting.statuses <= {202, 503}
    for job in submitting.accepted:
        assert server.ended_job(job)["status"] == "succeeded"


@pytest.fixture
def proxies(postgres: Postgres) -> Iterator[tuple[Proxy, Proxy]]:
    with Proxy(address_of(postgres.url)) as one, Proxy(address_of(postgres.url)) as other:
        yield one, other


def test_a_restart_loses_nothing(start_on_frail_postgres: Start, postgres: Postgres) -> None:
    server = start_on_frail_postgres.server(**SETTINGS)
    with submitting(server) as jobs:
        for _ in range(2):
            postgres.stop()  # pg_ctl -m immediate
            postgres.start()
            jobs.more()


def test_a_name_that_leads_to_another_server_is_followed(
    tmp_path: Path, postgres: Postgres, proxies: tuple[Proxy, Proxy]
) -> None:
    """The address of the database moves: old connections break, or stay open and are silent."""
    proxy = proxies[0]
    url = through(postgres.url, proxy)
    with (
        starting(tmp_path, (), ADE_DATABASE_URL=url, **SETTINGS) as start,
        submitting(start.server()) as jobs,
    ):
        proxy.switch(("127.0.0.1", proxies[1].port))
        jobs.more()
        proxy.silence_existing()
        jobs.more()


def test_the_next_host_of_the_url_is_used(
    tmp_path: Path, postgres: Postgres, proxies: tuple[Proxy, Proxy]
) -> None:
    first, second = proxies
    hosts = f"127.0.0.1:{first.port},127.0.0.1:{second.port}"
    url = f"postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write"
    with (
        starting(tmp_path, (), ADE_DATABASE_URL=url, **SETTINGS) as start,
        submitting(start.server()) as jobs,
    ):
        assert not second.connections
        first.refuse()
        jobs.more()
        eventually(lambda: second.connections)
        first.restore()
        second.refuse()
        jobs.more()
