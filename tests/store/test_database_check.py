"""`ade db check`: each contradiction between rows is found, and repaired if that is safe."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, failure
from tests.store.conformance.test_builds import Site, version

from ade.app.database_check import BLOB_CHECK, LOG_CHECK, ROW_CHECKS, Finding, check_database
from ade.clock import ManualClock
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings

GONE = "0198c000-0000-7000-8000-000000000999"


class Damaged:
    """Hold a database, and change its rows with its constraints switched off."""

    def __init__(self, database: SqlDatabase, clock: ManualClock) -> None:
        self.database = database
        self.store = database.open(clock)
        self.acts = Acts(Kernel(self.store, KernelSettings(queue_size=0)), clock)
        self.site = Site(self.acts, database)

    def sql(self, *statements: str) -> None:
        with self.database.connect() as connection:
            if self.database.name == "sqlite":
                connection.execute(text("PRAGMA foreign_keys = OFF"))
                connection.execute(text("PRAGMA ignore_check_constraints = ON"))
            else:
                connection.execute(text("SET session_replication_role = replica"))
            for statement in statements:
                connection.execute(text(statement))

    def check(self, **options: Any) -> dict[str, Finding]:
        return {one.name: one for one in check_database(self.store, **options)}


@pytest.fixture
def damaged(sql_database: SqlDatabase, clock: ManualClock) -> Damaged:
    return Damaged(sql_database, clock)


def _job_without_request(d: Damaged) -> str:
    job = d.acts.submit(target_id="t")
    d.sql(f"DELETE FROM requests WHERE id = '{job.id}'")
    return job.id


def _request_without_job(d: Damaged) -> str:
    job = d.acts.submit()
    d.sql(f"DELETE FROM jobs WHERE id = '{job.id}'")
    return job.id


def _second_live_job_in_lane(d: Damaged) -> str:
    d.acts.submit(target_id="t")
    second = d.acts.submit(target_id="t")
    d.sql(f"UPDATE jobs SET eligible = 1, holds_lane = 1 WHERE id = '{second.id}'")
    return second.id


def _eligible_too_early(d: Damaged) -> str:
    run = d.site.run()
    d.sql(f"UPDATE jobs SET eligible = 1 WHERE id = '{run.id}'")
    return run.id


def _waits_for_nothing(d: Damaged) -> str:
    job = d.acts.submit()
    d.sql(f"UPDATE jobs SET eligible = 0 WHERE id = '{job.id}'")
    return job.id


def _waits_for_wrong_kind(d: Damaged) -> str:
    job = d.acts.submit()
    d.sql(f"UPDATE jobs SET eligible = 0, needs_kind = 'other' WHERE id = '{job.id}'")
    return job.id


def _build_without_job(d: Damaged) -> str:
    run = d.site.run()
    d.sql("DELETE FROM jobs WHERE id = (SELECT job_id FROM builds)")
    d.sql("DELETE FROM requests WHERE id = (SELECT job_id FROM builds)")
    return str(run.build_id)


def _build_not_settled(d: Damaged) -> str:
    run = d.site.run()
    claim = d.site.claim_build()
    d.acts.finish(claim, failure())
    d.sql(
        "UPDATE builds SET status = 'queued', started_at = NULL, finished_at = NULL, error = NULL"
    )
    return str(run.build_id)


def _lane_stands_still(d: Damaged) -> str:
    job = d.acts.submit(target_id="t")
    d.sql(f"UPDATE jobs SET eligible = 0, holds_lane = 0 WHERE id = '{job.id}'")
    return job.id


def _activation_without_build(d: Damaged) -> str:
    accepted = d.site.activate(version())
    assert accepted.ensured is not None
    d.sql("UPDATE builds SET status = 'cancelled', finished_at = 1")
    return accepted.ensured.version.configuration_id


def _execution_without_job(d: Damaged) -> str:
    d.sql(f"INSERT INTO executions (work_id, job_id) VALUES ('{GONE}', '{GONE}')")
    return GONE


def _artifact_without_job(d: Damaged) -> str:
    d.sql(
        "INSERT INTO artifacts (workspace_id, id, job_id, name, digest, size_bytes, content_type,"
        f" created_at) VALUES ('{WORKSPACE}', '{GONE}', '{GONE}', 'a', 'd', 1, 'text/plain', 1)"
    )
    return GONE


def _events_without_job(d: Damaged) -> str:
    d.sql(
        "INSERT INTO events (workspace_id, job_id, seq, at, type, data)"
        f" VALUES ('{WORKSPACE}', '{GONE}', 1, 1, 'job.queued', '{{}}')"
    )
    return GONE


def _output_without_job(d: Damaged) -> str:
    d.sql(
        "INSERT INTO output_batches (workspace_id, job_id, seq, attempt, starts, ends, at, pieces)"
        f" VALUES ('{WORKSPACE}', '{GONE}', 1, 1, 0, 1, 1, '[]')"
    )
    return GONE


def _counts_differ(d: Damaged) -> str:
    d.acts.submit()
    d.sql("UPDATE job_counts SET jobs = jobs + 1")
    return WORKSPACE


DAMAGE: dict[str, Callable[[Damaged], str]] = {
    name: globals()[f"_{name}"]
    for name in (check.name for check in ROW_CHECKS)
    if f"_{name}" in globals()
}


def test_every_check_is_tried_but_one() -> None:
    """A version of another configuration in an activation: no repair is offered, none is tried."""
    assert {check.name for check in ROW_CHECKS} - set(DAMAGE) == {
        "activation_of_other_configuration"
    }


@pytest.mark.parametrize("name", list(DAMAGE))
def test_what_is_wrong_is_found_and_repaired_or_left_with_advice(
    damaged: Damaged, name: str
) -> None:
    assert damaged.check() == {}
    wrong = DAMAGE[name](damaged)
    found = damaged.check()[name]
    assert wrong in found.ids
    assert (found.count, found.repaired) == (1, 0)
    assert found.advice
    (check,) = [check for check in ROW_CHECKS if check.name == name]
    repaired = damaged.check(repair=True)[name]
    assert repaired.repaired == (check.repair is not None)
    damaged.acts.wait(1)
    damaged.acts.kernel.now.expire(True)
    assert set(damaged.check(repair=True)) == (set() if check.repair else {name})


def test_a_gap_in_a_log_is_found(damaged: Damaged) -> None:
    claim = damaged.acts.start()
    damaged.acts.report(claim, "one", "two")
    assert damaged.check() == {}
    damaged.sql("DELETE FROM events WHERE seq = 3")
    assert damaged.check()[LOG_CHECK.name].ids == [claim.id]
    damaged.sql("DELETE FROM events", "DELETE FROM jobs", "DELETE FROM requests")


def test_missing_bytes_of_an_artifact_are_found(damaged: Damaged, tmp_path: Path) -> None:
    _artifact_without_job(damaged)
    (tmp_path / "d").write_text("there")
    assert BLOB_CHECK.name not in damaged.check(blob_path=lambda digest: tmp_path / digest)
    (tmp_path / "d").unlink()
    found = damaged.check(blob_path=lambda digest: tmp_path / digest)
    assert found[BLOB_CHECK.name].ids == [GONE]


def test_a_repaired_job_without_request_can_be_cancelled(damaged: Damaged) -> None:
    _job_without_request(damaged)
    damaged.check(repair=True)
    (job,) = damaged.acts.everything()
    assert job.kind == "lost"
    assert damaged.acts.cancel(job).status == "cancelled"
