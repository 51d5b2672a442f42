"""PostgreSQL goes away while jobs run, and comes back."""

import httpx
import pytest
from tests.faults.postgres import Postgres
from tests.processes import eventually, jobs_of
from tests.system.server import JOBS, SHORT_LEASE, Server, Start, echo, long_echo

pytestmark = pytest.mark.postgresql


def answers_503(answer: httpx.Response) -> bool:
    """Check that an answer is a problem that says: not now."""
    assert answer.status_code != 500, answer.text
    if answer.status_code != 503:
        return False
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "unavailable"
    assert "retry-after" in answer.headers
    return True


def recovers(server: Server) -> None:
    """Check that a job goes all the way."""
    eventually(lambda: server.http.get("/readyz").status_code == 200)
    job = server.submit(value="after")
    assert server.ended_job(job)["status"] == "succeeded"


def test_a_server_without_its_database_says_so(
    start_on_frail_postgres: Start, postgres: Postgres
) -> None:
    server = start_on_frail_postgres.server(**SHORT_LEASE)
    job = server.submit(**long_echo(4))
    server.running_job(job)
    postgres.stop()
    for _ in range(3):
        assert answers_503(server.http.get(f"{JOBS}/{job['job_id']}"))
        assert answers_503(server.http.post(JOBS, json=echo(value=1)))
        assert answers_503(server.http.get(JOBS))
    assert server.http.get("/readyz").status_code == 503
    health = server.http.get("/api/v1/health")
    assert (health.status_code, health.json()["status"]) == (503, "down")
    assert server.http.get("/healthz").status_code == 200
    # It cannot renew: the child is killed before the lease ends.
    eventually(lambda: not jobs_of(server.pid), 5)
    server.said('"attempt given up"')

    postgres.start()
    found = server.ended_job(job)
    assert (found["status"], found["attempt"]) == ("succeeded", 2)
    recovers(server)
    assert server.stop() == 0


def test_a_short_absence_costs_no_attempt(
    start_on_frail_postgres: Start, postgres: Postgres
) -> None:
    server = start_on_frail_postgres.server(ADE_LEASE_SECONDS=60, ADE_RENEW_SECONDS=0.5)
    during = server.submit(**long_echo(1))
    longer = server.submit(**long_echo(5))
    server.running_job(during)
    server.running_job(longer)
    postgres.stop()
    server.said('"end not recorded yet"')  # the first has ended, and the end could not be recorded
    postgres.start()
    for job in (during, longer):
        found = server.ended_job(job)
        assert (found["status"], found["attempt"]) == ("succeeded", 1)
    recovers(server)


def test_a_database_that_hangs_is_not_trusted_either(
    start_on_frail_postgres: Start, postgres: Postgres
) -> None:
    server = start_on_frail_postgres.server(**SHORT_LEASE)
    job = server.submit(**long_echo(4))
    server.running_job(job)
    (child,) = jobs_of(server.pid)
    postgres.freeze()
    eventually(lambda: child not in jobs_of(server.pid), 5)
    assert server.http.get("/healthz").status_code == 200
    assert server.http.get("/readyz").status_code == 503
    postgres.thaw()
    assert server.ended_job(job)["status"] == "succeeded"
    assert server.log(job).count("job.lost") == 1  # a claim that hung is handed back, not lost
    recovers(server)
    assert server.stop() == 0


def test_a_worker_outlives_its_database(start_on_frail_postgres: Start, postgres: Postgres) -> None:
    worker = start_on_frail_postgres.worker(**SHORT_LEASE)
    postgres.stop()
    worker.said('"cannot claim"')
    postgres.start()
    server = start_on_frail_postgres.server(**SHORT_LEASE)
    recovers(server)
    assert worker.stop() == 0


def test_a_server_may_stop_while_its_database_is_away(
    start_on_frail_postgres: Start, postgres: Postgres
) -> None:
    server = start_on_frail_postgres.server(**SHORT_LEASE)
    job = server.submit(**long_echo(600))
    server.running_job(job)
    postgres.stop()
    assert server.stop(20) == 0
    assert "Traceback" not in server.output
