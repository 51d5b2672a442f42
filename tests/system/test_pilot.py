"""A worker that leaves by itself: when it is idle, and before its wall time ends."""

from tests.system.server import Start

SECONDS = 120.0


def test_a_pilot_works_and_leaves_when_it_is_idle(start_on_postgres: Start) -> None:
    server = start_on_postgres.server(ADE_SAFE_MODE="false", ADE_MAX_CONCURRENCY="1")
    pilot = start_on_postgres.command("worker", "--exit-when-idle", "1", "--block", "ade-test-1")
    name = pilot.said(r"worker (\S+) is ready")[1]
    assert name.startswith("ade-test-1/")
    jobs = [server.submit(value=number, sleep_ms=200) for number in range(8)]
    assert {server.ended_job(job)["status"] for job in jobs} == {"succeeded"}
    assert pilot.ended(SECONDS) == 0
    assert "leaving" in pilot.output


def test_a_wall_time_without_room_for_the_drain_is_refused(start_on_postgres: Start) -> None:
    refused = start_on_postgres.command("worker", "--walltime", "80")
    assert refused.ended(SECONDS) == 2
    assert "longer than 90 s" in " ".join(refused.output.split())
