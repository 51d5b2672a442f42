"""Take any comparison of the fence out of any statement, and a check fails.

For each statement that compares a fence with what a caller presents, that one comparison is
made always true, and the battery of checks below must notice. With the statements as they are, it
passes. So no comparison can be removed unnoticed, and none is there for nothing.
"""

import re
from collections.abc import Callable

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
from ade.store.rows import Append, Build, BuildHeld, JobRow, LeaseRef, Renewal, StopRow
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

COMPARISON = re.compile(r"(jobs|builds)\.fence = (\?|%s|input\.fence)")


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


def change_build(acts: Acts) -> None:
    session = acts.kernel.store
    assert isinstance(session, Session)

    def make(tx: SqlTransaction) -> Build:
        made = tx.catalogue.add_configuration(WORKSPACE, "c", [])
        return tx.builds.ensure(tx.catalogue.snapshot(WORKSPACE, made.id, "me"), "sha256:f")

    build = session.change(make)
    session.change(lambda tx: tx.builds.claim("the first", 1))
    acts.wait(1)
    session.change(lambda tx: tx.builds.claim("the second", 1))
    before = session.read(lambda reading: reading.builds.find(WORKSPACE, build.id))
    stale = BuildHeld(WORKSPACE, build.id, before.fence - 1)
    assert not session.change(lambda tx: tx.builds.renew(stale, 10))
    assert session.read(lambda reading: reading.builds.find(WORKSPACE, build.id)) == before


CHECKS = [
    renew,
    end,
    end_beside_the_right_one,
    move,
    append,
    request_stop,
    report_started,
    clear_lane,
    change_build,
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


CASES = [
    pytest.param(dialect, name, marks=[pytest.mark.postgresql] * (dialect == "postgresql"))
    for dialect in ("sqlite", "postgresql")
    for name in mutable(dialect)
    if name not in NOT_RUN[dialect]
]


@pytest.mark.parametrize(("dialect", "name"), CASES)
def test_a_fence_that_is_not_compared_is_noticed(
    request: pytest.FixtureRequest, dialect: str, name: str
) -> None:
    url = request.getfixturevalue("sqlite_url" if dialect == "sqlite" else "postgres_url")
    mutated = []

    def mutate(statement: str, sql: str) -> str:
        if statement != name:
            return sql
        changed, count = COMPARISON.subn(r"(\1.fence = \2 OR 1 = 1)", sql)
        assert count == 1, "more than one comparison: mutate each"
        mutated.append(statement)
        return changed

    failed = failed_checks(SqlDatabase(dialect, url), mutate)
    assert mutated, "the battery never ran this statement"
    assert failed, f"no check notices that {name} does not compare the fence"


def test_the_pattern_finds_every_comparison() -> None:
    """A comparison spelled otherwise would escape the mutation."""
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
