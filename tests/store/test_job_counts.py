"""The counters are what there is, whoever changes jobs; the state machine's tests check it too."""

import threading
from collections import Counter
from collections.abc import Callable

import pytest
from sqlalchemy import text
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, submission, success

from ade.clock import ManualClock
from ade.domain.job import Priority
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.store import job_counts
from ade.store.rows import JobRef
from ade.store.session import Session
from ade.store.transaction import SqlTransaction

SETTINGS = KernelSettings(queue_size=0)


@pytest.fixture
def open_acts(open_session: Callable[[], Session], clock: ManualClock) -> Callable[[], Acts]:
    """Act on one database as several processes would."""
    return lambda: Acts(Kernel(open_session(), SETTINGS), clock)


def test_one_process_submits_and_another_finishes(open_acts: Callable[[], Acts]) -> None:
    one, other = open_acts(), open_acts()
    for _ in range(3):
        one.submit()
    first, second = other.claim(limit=2)
    other.succeed(first)
    one.cancel(second)
    other.check()
    one.finish(second, None)
    one.check()


def test_what_is_forgotten_is_read(
    open_acts: Callable[[], Acts], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_counts, "REMEMBERED_MAX", 2)
    acts = open_acts()
    claims = [acts.start(priority=priority) for priority in (*Priority, Priority.LOW)]
    for claim in claims:
        acts.succeed(claim)
    acts.check()


def test_a_change_that_is_rolled_back_is_not_counted(open_acts: Callable[[], Acts]) -> None:
    acts = open_acts()
    acts.succeed(acts.start())
    store = acts.kernel.store
    assert isinstance(store, Session)

    def delete_and_fail(tx: SqlTransaction) -> None:
        assert tx.delete_finished(WORKSPACE, 1 << 60, 9)
        raise RuntimeError("after the change")

    with pytest.raises(RuntimeError, match="after the change"):
        store.change(delete_and_fail)
    acts.check()


def test_deleted_counters_are_made_again(
    sql_database: SqlDatabase, open_acts: Callable[[], Acts]
) -> None:
    """A repair by another process deletes rows that this one knows to be there."""
    one, other = open_acts(), open_acts()
    job = one.submit()
    other.submit()
    store = other.kernel.store
    assert isinstance(store, Session)
    store.change(lambda tx: tx.job_counts.recount())
    with sql_database.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM job_counts")).scalar_one() == 1
    one.cancel(job)
    one.check()


def test_many_processes_at_once(open_session: Callable[[], Session]) -> None:
    """Each submits, claims, finishes and deletes, while one counts anew."""
    stores = [open_session() for _ in range(4)]
    kernels = [Kernel(store, SETTINGS) for store in stores]
    errors: list[BaseException] = []

    def work(kernel: Kernel, number: int) -> None:
        try:
            for turn in range(8):
                kernel.now.submit(submission(payload=f'{{"n": {number * 100 + turn}}}'))
                for claim in kernel.now.claim(ClaimRequest(f"worker {number}", 2)):
                    kernel.now.finish(Finish(claim, success()))
                    kernel.now.delete(JobRef(claim.workspace_id, claim.id))
        except BaseException as error:
            errors.append(error)

    def count() -> None:
        try:
            for _ in range(5):
                stores[0].change(lambda tx: tx.job_counts.recount())
        except BaseException as error:
            errors.append(error)

    threads = [
        threading.Thread(target=work, args=args) for args in zip(kernels, range(4), strict=True)
    ]
    threads.append(threading.Thread(target=count))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    found = stores[1].read(
        lambda r: (r.count_jobs(WORKSPACE, {}), r.list_jobs(WORKSPACE, {}, None, 999))
    )
    assert found[0] == Counter(job.status for job in found[1])
