"""Group commit: callers share a transaction, and nothing else."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.databases import SqlDatabase
from tests.store.acts import Acts, submission
from tests.store.writer import BreaksAtCommit, Gathering

from ade.clock import ManualClock
from ade.domain.errors import QueueFull, Unavailable
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted, Submission
from ade.store.group_commit import OutcomeUnknown
from ade.store.port import Transaction
from ade.store.session import Session

UNKNOWN_WORKSPACE = "0198a000-0000-7000-8000-00000000ffff"


@pytest.fixture
def kernel(sql_database: SqlDatabase, clock: ManualClock) -> Kernel:
    return Kernel(sql_database.open(clock), KernelSettings(queue_size=3))


@pytest.fixture
def gathering(kernel: Kernel) -> Gathering:
    assert isinstance(kernel.store, Session)
    return Gathering(kernel.store)


@pytest.fixture
def acts(kernel: Kernel, clock: ManualClock) -> Iterator[Acts]:
    doing = Acts(kernel, clock)
    yield doing
    doing.check()


def test_what_waits_together_commits_together(gathering: Gathering, acts: Acts) -> None:
    outcomes = gathering.run(*[acts.submit] * 3)
    assert gathering.commits == 1
    assert len({job.id for job in outcomes}) == 3


def test_different_verbs_share_a_transaction(gathering: Gathering, acts: Acts) -> None:
    claim = acts.start()
    recorded, job, kept = gathering.run(lambda: acts.succeed(claim), acts.submit, acts.claim)
    assert gathering.commits == 1
    assert recorded.status == "succeeded"
    assert [claim.id for claim in kept] == [job.id]


def test_a_refusal_is_its_callers_alone(gathering: Gathering, acts: Acts) -> None:
    outcomes = gathering.run(*[acts.submit] * 5)
    assert gathering.commits == 1
    assert sum(isinstance(outcome, QueueFull) for outcome in outcomes) == 2
    assert len(acts.everything()) == 3


def test_an_item_that_the_database_refuses_harms_no_other(gathering: Gathering, acts: Acts) -> None:
    """It fails the group's transaction; then each call runs on its own."""
    first, broken, last = gathering.run(
        acts.submit, lambda: acts.submit(workspace_id=UNKNOWN_WORKSPACE), acts.submit
    )
    assert isinstance(broken, Exception)
    assert {job.id for job in acts.everything()} == {first.id, last.id}


def test_a_verb_that_raises_harms_no_other(gathering: Gathering, acts: Acts) -> None:
    def fail(tx: Transaction, items: list[None]) -> list[None]:
        acts.kernel.verbs.submit(tx, [submission()])
        raise RuntimeError("a bug")

    job, broken = gathering.run(acts.submit, lambda: acts.kernel.store.write(fail, [None]))
    assert str(broken) == "a bug"
    assert [found.id for found in acts.everything()] == [job.id]
    assert acts.submit().id  # the writer goes on


def test_duplicates_in_one_group_are_one_job(gathering: Gathering, acts: Acts) -> None:
    duplicates = gathering.run(*[lambda: acts.accept(execution_key="sha256:k")] * 4)
    assert sorted(accepted.deduplicated for accepted in duplicates) == [False, True, True, True]
    assert len({accepted.job.id for accepted in duplicates}) == 1


def test_a_caller_that_gives_up_does_not_undo_its_call(gathering: Gathering, acts: Acts) -> None:
    async def give_up() -> None:
        submitting = asyncio.ensure_future(acts.kernel.submit(submission()))
        await asyncio.sleep(0)
        submitting.cancel()
        await asyncio.gather(submitting, return_exceptions=True)

    asyncio.run(give_up())
    acts.submit()
    assert len(acts.everything()) == 2


def test_callers_of_an_event_loop_that_was_closed_are_forgotten(acts: Acts) -> None:
    async def leave() -> None:
        acts.kernel.store.awrite(acts.kernel.verbs.submit, [submission()])

    asyncio.run(leave())
    acts.submit()
    assert len(acts.everything()) == 2


def test_closing_finishes_what_was_handed_over(gathering: Gathering, acts: Acts) -> None:
    store = acts.kernel.store
    jobs = gathering.run(*[acts.submit] * 3)
    assert len({job.id for job in jobs}) == 3
    store._group.close()  # type: ignore[attr-defined]
    with pytest.raises(Unavailable, match="closed"):
        acts.submit()


def test_a_listener_that_fails_does_not_make_a_commit_run_again(acts: Acts) -> None:
    def fail(topics: object) -> None:
        raise RuntimeError("the loop was closed")

    acts.kernel.store.on_commit = fail
    acts.submit()
    assert len(acts.everything()) == 1


@pytest.mark.parametrize("arrives", [True, False])
def test_what_may_have_been_committed_is_not_run_again(
    gathering: Gathering, acts: Acts, arrives: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = gathering.store
    acts.submit()
    breaking = BreaksAtCommit(store._connection, arrives=arrives)
    store._connection = breaking
    breaking.armed = True
    outcomes = list(store_outcomes(acts, 2))
    assert all(isinstance(outcome, OutcomeUnknown) for outcome in outcomes)
    assert len(acts.everything()) == (2 if arrives else 1)
    acts.submit()  # on a new connection


def store_outcomes(acts: Acts, count: int) -> Iterator[Any]:
    for _ in range(count):
        try:
            yield acts.submit()
        except Exception as error:
            yield error
            return


def test_a_connection_that_broke_meanwhile_is_replaced(gathering: Gathering, acts: Acts) -> None:
    acts.submit()
    gathering.store._connection.close()
    acts.submit()
    assert len(acts.everything()) == 2


def test_a_database_that_cannot_be_reached_is_reported(clock: ManualClock) -> None:
    store = Session("sqlite:////nonexistent/folder/ade.db", clock=clock)
    kernel = Kernel(store)
    with pytest.raises(Unavailable, match="cannot be reached"):
        kernel.now.submit(submission())
    store.close()


def test_a_batch_is_one_transaction(gathering: Gathering, acts: Acts) -> None:
    asks: list[Submission] = [submission() for _ in range(3)]
    gathering.commits = 0
    outcomes = acts.kernel.now.many("submit", asks)
    assert gathering.commits == 1
    assert all(isinstance(outcome, Accepted) for outcome in outcomes)
