"""Take any comparison of the fence out of any statement, and a check fails.

For each statement that compares a fence with what a caller presents, that one comparison is
made always true, and the battery of checks below must notice. With the statements as they are, it
passes. So no comparison can be removed unnoticed, and none is there for nothing. The statements
that change a build carry the status and the job that it was seen with in place of a fence; each of
these comparisons is mutated in the same way.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, failure, held, success
from tests.store.compiling import sql_of, statements

from ade.clock import ManualClock
from ade.domain.errors import LeaseLost
from ade.domain.job import AGENT_POOL, LOCAL_POOL, Cause, Status
from ade.kernel import Kernel
from ade.stages import transitions
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Transaction
from ade.store.rows import Append, Build, JobRow, LeaseRef, Renewal, StopRow
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

COMPARISON = re.compile(r"(jobs)\.fence = (\?|%s|input\.fence)")
# What the statements that change builds compare, besides what names the build.
BUILD_COMPARISONS = [
    ("settle_build", "status"),
    ("settle_build", "job_id"),
    ("queue_build", "status"),
]
FIRST_JOB, SECOND_JOB = (f"0198c000-0000-7000-8000-00000000000{number}" for number in (1, 2))


def mutable(dialect: str) -> list[str]:
    """Find the statements that compare the fence."""
    return [name for name, sql in sql_of(dialect).items() if COMPARISON.search(sql)]


class Second:
    """Hold a job in its second attempt, and the fence of the first."""

    def __init__(self, acts: Acts, pool: str = LOCAL_POOL, target_id: str | None = None) -> None:
        self.acts = acts
        self.job = acts.submit(pool=pool, target_id=target_id)
        (self.first,) = acts.claim(pool=pool)
        acts.lose(self.first)
        (self.claim,) = acts.claim(pool=pool)
        self.stale: LeaseRef = held(self.first)
        self.before = acts.job(self.job)

    def unchanged(self) -> bool:
        """Tell whether nothing has happened to the job since."""
        return self.acts.job(self.job) == self.before

    def does_nothing(self, act: Callable[[Transaction], list[object]]) -> None:
        """Check that a verb of the port finds no row for the old fence."""
        (found,) = self.acts.kernel.store.write(lambda tx, items: [act(tx)], [None])
        assert not found
        assert self.unchanged()


def renew(acts: Acts) -> None:
    second = Second(acts)
    second.does_nothing(lambda tx: list(tx.renew([Renewal(*second.stale, tx.now_us + 1)])))


def end(acts: Acts) -> None:
    second = Second(acts)
    with pytest.raises(LeaseLost):
        acts.finish(second.first, success(by="the first"))
    assert second.unchanged()


def end_beside_the_right_one(acts: Acts) -> None:
    second = Second(acts)
    ends = [Finish(second.first, failure()), Finish(second.claim, success(by=2))]
    lost, recorded = acts.kernel.now.many("finish", ends)
    assert isinstance(lost, LeaseLost)
    assert recorded.status is Status.SUCCEEDED
    assert acts.result(second.claim) == {"by": 2}


def move(acts: Acts) -> None:
    second = Second(acts)
    stale: JobRow = second.before._replace(fence=second.first.fence)
    second.does_nothing(
        lambda tx: list(
            tx.move([transitions.move(stale, Status.FAILED, Cause.FINISHED, tx.now_us)])
        )
    )


def append(acts: Acts) -> None:
    second = Second(acts)
    second.does_nothing(lambda tx: list(tx.append([Append(*second.stale, 1, 100, None)])))


def hold_output(acts: Acts) -> None:
    second = Second(acts)
    second.does_nothing(lambda tx: list(tx.hold_output([second.stale])))


def request_stop(acts: Acts) -> None:
    second = Second(acts)
    second.does_nothing(lambda tx: list(tx.request_stop([StopRow(*second.stale, "cancel")])))


def report_started(acts: Acts) -> None:
    second = Second(acts, pool=AGENT_POOL)
    second.does_nothing(lambda tx: list(tx.report_started(second.stale, tx.now_us)))


def clear_lane(acts: Acts) -> None:
    second = Second(acts, target_id="t")
    acts.finish(second.claim, failure())
    second.before = acts.job(second.job)
    second.does_nothing(lambda tx: list(tx.clear_lane(second.stale, "failed")))


class MadeAgain:
    """Hold a build that a second job makes again, after that of the first failed."""

    def __init__(self, acts: Acts) -> None:
        session = acts.kernel.store
        assert isinstance(session, Session)
        self.session = session
        self.first = session.change(self._make)
        self.failed = self.first._replace(status="failed", error="{}", finished_at=1)
        assert session.change(lambda tx: tx.builds.settle(self.failed))
        assert session.change(lambda tx: _queue(tx, self.failed, SECOND_JOB))
        self.now = self.read()

    @staticmethod
    def _make(tx: SqlTransaction) -> Build:
        made = tx.catalogue.add_configuration(WORKSPACE, "c", [])
        draft = tx.catalogue.version_of_draft(WORKSPACE, made.id, "me")
        version = tx.catalogue.ensure_version(draft)
        build = Build(
            workspace_id=WORKSPACE,
            id=FIRST_JOB,
            configuration_id=made.id,
            fingerprint="sha256:f",
            status="queued",
            error=None,
            created_at=0,
            started_at=None,
            finished_at=None,
            version_id=version.id,
            environment=None,
            job_id=FIRST_JOB,
        )
        tx.builds.insert(build)
        return build

    def read(self) -> Build:
        """Read the build."""
        return self.session.read(lambda reading: reading.builds.find(WORKSPACE, self.first.id))

    def settle(self, build: Build) -> bool:
        """Record what became of a build, as it was seen."""
        return self.session.change(lambda tx: tx.builds.settle(build))


def settle_build_by_an_old_job(acts: Acts) -> None:
    build = MadeAgain(acts)
    assert not build.settle(build.failed)
    assert build.read() == build.now


def settle_build_twice(acts: Acts) -> None:
    build = MadeAgain(acts)
    ready = build.now._replace(status="ready", finished_at=2)
    assert build.settle(ready)
    assert not build.settle(build.failed._replace(job_id=SECOND_JOB))
    assert build.read() == ready


def _queue(tx: SqlTransaction, build: Build, job_id: str) -> bool:
    return tx.builds.queue(build, job_id, str(build.version_id))


def queue_build_as_it_was(acts: Acts) -> None:
    build = MadeAgain(acts)
    again = build.session.change(lambda tx: _queue(tx, build.failed, FIRST_JOB))
    assert not again
    assert build.read() == build.now


CHECKS = [
    renew,
    end,
    end_beside_the_right_one,
    move,
    append,
    hold_output,
    request_stop,
    report_started,
    clear_lane,
    settle_build_by_an_old_job,
    settle_build_twice,
    queue_build_as_it_was,
]
# The other of two spellings of one statement: a database runs either.
NOT_RUN = {"sqlite": {"end_returning"}, "postgresql": {"end", "end_at_address"}}


def failed_checks(
    database: SqlDatabase, rewrite: Callable[[str, str], str] | None = None
) -> list[str]:
    """Run the battery, each check on a clean database, and name those that fail."""
    failed = []
    for check in CHECKS:
        database.wipe()
        clock = ManualClock()
        store = database.open(clock, rewrite)
        try:
            check(Acts(Kernel(store, KernelSettings(queue_size=0)), clock))
        except (Exception, pytest.fail.Exception):  # a broken statement may break what is above it
            failed.append(check.__name__)
        finally:
            database.close()
    return failed


def test_the_statements_as_they_are_pass(sql_database: SqlDatabase) -> None:
    assert failed_checks(sql_database) == []


def case(dialect: str, *named: str) -> Any:
    return pytest.param(dialect, *named, marks=[pytest.mark.postgresql] * (dialect != "sqlite"))


CASES = [
    case(dialect, name)
    for dialect in NOT_RUN
    for name in mutable(dialect)
    if name not in NOT_RUN[dialect]
]


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_a_fence_that_is_not_compared_is_noticed(
    request: pytest.FixtureRequest, dialect: str, name: str
) -> None:
    check_mutation(request, dialect, name, COMPARISON, r"(\1.fence = \2 OR 1 = 1)")


@pytest.mark.parametrize(
    ("dialect", "name", "column"),
    [case(dialect, *named) for dialect in NOT_RUN for named in BUILD_COMPARISONS],
)
def test_what_a_change_of_a_build_does_not_compare_is_noticed(
    request: pytest.FixtureRequest, dialect: str, name: str, column: str
) -> None:
    comparison = re.compile(rf"builds\.{column} = (\?|%s::\w+)")
    check_mutation(request, dialect, name, comparison, rf"(builds.{column} = \1 OR 1 = 1)")


def check_mutation(
    request: pytest.FixtureRequest,
    dialect: str,
    name: str,
    comparison: re.Pattern[str],
    always_true: str,
) -> None:
    """Make a comparison of a statement always true, and expect that a check notices it."""
    url = request.getfixturevalue("sqlite_url" if dialect == "sqlite" else "postgres_url")
    mutated = []

    def mutate(statement: str, sql: str) -> str:
        if statement != name:
            return sql
        changed, count = comparison.subn(always_true, sql)
        assert count == 1, "more than one comparison: mutate each"
        mutated.append(statement)
        return changed

    failed = failed_checks(SqlDatabase(dialect, url), mutate)
    assert mutated, "the battery never ran this statement"
    assert failed, f"no check notices what {name} does not compare"


def test_the_pattern_finds_every_comparison() -> None:
    """A comparison written otherwise would escape the mutation."""
    for dialect in NOT_RUN:
        for name, sql in sql_of(dialect).items():
            compared = re.findall(
                r"fence (?:=|<|>|IN|IS|BETWEEN)", sql
            )  # an assignment is `fence=`
            assert len(compared) == len(COMPARISON.findall(sql)), f"{name}: {sql}"


def test_every_statement_that_a_holder_runs_compares_the_fence() -> None:
    """A statement that takes a fence from its row must compare it."""
    for dialect in NOT_RUN:
        compared = set(mutable(dialect))
        takes_fence = {name for name, s in statements().items() if "fence" in s.fields}
        assert takes_fence <= compared, takes_fence - compared
