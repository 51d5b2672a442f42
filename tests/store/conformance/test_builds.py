"""Builds: a run waits until its build has ended, whichever way, and never longer."""

import json
from typing import Any

import pytest
from sqlalchemy import text
from tests.databases import WORKSPACE, Database, MemoryDatabase, SqlDatabase
from tests.store.acts import INTERNAL, Acts, submission

from ade.stages.builds import BuildEnded
from ade.stages.submit.model import Accepted, Submission
from ade.store.rows import JobRow

CONFIGURATION = "0198c000-0000-7000-8000-000000000001"
DOCUMENT = "0198c000-0000-7000-8000-000000000002"
BUILD = "0198c000-0000-7000-8000-000000000003"
ENDED = BuildEnded(WORKSPACE, BUILD)


@pytest.fixture
def build(acts: Acts, database: Database) -> "Build":
    """Prepare what runs need, with a build that has not begun."""
    made = Build(acts, database)
    made.prepare()
    return made


class Build:
    """Submit runs, and end the build that they wait for."""

    def __init__(self, acts: Acts, database: Database) -> None:
        self.acts = acts
        self.database = database

    def prepare(self) -> None:
        """Insert what runs refer to."""
        insert, common = self.database.insert, {"workspace_id": WORKSPACE, "created_at": 0}
        insert("configurations", id=CONFIGURATION, name="c", **common)
        insert("documents", id=DOCUMENT, name="d", digest="sha256:d", size_bytes=1, **common)
        insert(
            "builds",
            id=BUILD,
            configuration_id=CONFIGURATION,
            fingerprint="sha256:f",
            status="queued",
            fence=0,
            **common,
        )

    def submission(self, **changes: Any) -> Submission:
        """Ask for a run."""
        return submission(
            kind="normalize",
            configuration_id=CONFIGURATION,
            document_id=DOCUMENT,
            build_id=BUILD,
            **changes,
        )

    def run(self, **changes: Any) -> JobRow:
        """Submit a run."""
        self.acts.wait()
        accepted: Accepted = self.acts.kernel.now.submit(self.submission(**changes))
        return accepted.job

    def end(self, failure: str | None = None) -> int:
        """End the build, and tell the runs."""
        status = "ready" if failure is None else "failed"
        if isinstance(self.database, MemoryDatabase):
            self.database.insert("builds", workspace_id=WORKSPACE, id=BUILD, status=status)
        else:
            assert isinstance(self.database, SqlDatabase)
            with self.database.connect() as connection:
                connection.execute(text(f"UPDATE builds SET status = '{status}', finished_at = 1"))
        told: int = self.acts.kernel.now.settle_build(BuildEnded(WORKSPACE, BUILD, failure))
        return told


def test_runs_wait_for_their_build(acts: Acts, build: Build) -> None:
    runs = [build.run() for _ in range(3)]
    assert [run.eligible for run in runs] == [0, 0, 0]
    assert acts.claim(9) == []
    assert build.end() == 3
    assert acts.last_event_data(runs[0]) == {"attempt": 0, "cause": "build_ready"}
    assert [claim.id for claim in acts.claim(9)] == [run.id for run in runs]
    acts.check()


def test_a_failed_build_fails_its_runs(acts: Acts, build: Build) -> None:
    run = build.run()
    assert build.end("no such package") == 1
    error = json.loads(acts.job(run).error or "")
    assert acts.status(run) == "failed"
    assert (error["category"], error["code"]) == ("DEPENDENCY_ERROR", "BUILD_FAILED")
    assert error["message"] == "build failed: no such package"
    assert acts.last_event_data(run)["cause"] == "unrunnable"
    acts.check()


def test_a_run_of_a_settled_build_starts_at_once(acts: Acts, build: Build) -> None:
    build.end()
    run = build.run()
    assert run.eligible == 1
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_settling_twice_is_harmless(acts: Acts, build: Build) -> None:
    run = build.run()
    build.end()
    assert build.end() == 0
    acts.claim()
    assert build.end() == 0
    assert acts.log(run) == ["queued", "queued", "started"]


def test_a_cancelled_run_is_left_alone(acts: Acts, build: Build) -> None:
    run = build.run()
    acts.cancel(run)
    assert build.end() == 0
    assert acts.status(run) == "cancelled"


@pytest.mark.parametrize("settled_first", [True, False])
def test_a_run_with_a_time_waits_for_both(acts: Acts, build: Build, settled_first: bool) -> None:
    run = build.run(not_before=acts.clock.now_us() + 60_000_000)
    if settled_first:
        build.end()
        assert acts.claim() == []
    acts.wait(61)
    acts.kernel.now.expire()
    if not settled_first:
        assert acts.claim() == []
        build.end()
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_a_run_that_is_tried_again_needs_no_second_build(acts: Acts, build: Build) -> None:
    build.end()
    build.run()
    (claim,) = acts.claim()
    acts.finish(claim, INTERNAL)
    acts.wait(1)
    acts.kernel.now.expire()
    assert [again.id for again in acts.claim()] == [claim.id]


def test_a_lost_run_needs_no_second_build(acts: Acts, build: Build) -> None:
    build.end()
    build.run()
    (claim,) = acts.claim()
    acts.lose(claim)
    assert [again.id for again in acts.claim()] == [claim.id]


def test_a_run_resumed_before_its_build_has_ended_waits_for_it(acts: Acts, build: Build) -> None:
    run = build.run()
    acts.pause(run)
    acts.resume(run)
    assert acts.claim() == []
    assert build.end() == 1
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_a_run_resumed_after_its_build_has_ended_starts(acts: Acts, build: Build) -> None:
    run = build.run()
    acts.pause(run)
    build.end()
    acts.resume(run)
    assert [claim.id for claim in acts.claim()] == [run.id]
