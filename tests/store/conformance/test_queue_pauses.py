"""What operators pause does not start, and goes on when they let it; the rest is not delayed."""

from collections.abc import Callable

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import Acts

from ade.domain.errors import Conflict, NotFound
from ade.domain.job import LOCAL_POOL
from ade.domain.queue_pause import PauseScope
from ade.stages import queue_pauses as stage
from ade.stages.claim import ClaimRequest
from ade.stages.finish_and_claim import FinishAndClaim
from ade.stages.queue_pauses import PauseQueue, paused_scopes
from ade.stages.workers import RunningWorker
from ade.store.rows import Claim, QueuePauseRow

Workspaces = Callable[[int], list[str]]
KINDS = frozenset({"echo", "other"})
ALL = PauseScope()


def pause(acts: Acts, scope: PauseScope, reason: str = "bad release") -> QueuePauseRow:
    row: QueuePauseRow = acts.kernel.now.pause_queue(PauseQueue(scope, "operator", reason))
    return row


def resume(acts: Acts, scope: PauseScope) -> None:
    acts.kernel.now.resume_queue(scope)


def claims(acts: Acts, limit: int = 10) -> list[str]:
    """Claim as a worker does that runs both kinds, some time after the last one."""
    acts.wait(1)
    taken: list[Claim] = acts.kernel.now.claim(ClaimRequest("w", limit, LOCAL_POOL, kinds=KINDS))
    return [claim.id for claim in taken]


@pytest.mark.parametrize("scope", [ALL, PauseScope(WORKSPACE), PauseScope(kind="echo")])
def test_what_is_paused_does_not_start_until_it_is_resumed(acts: Acts, scope: PauseScope) -> None:
    job = acts.submit()
    pause(acts, scope)
    later = acts.submit()
    assert claims(acts) == []
    assert acts.status(job) == acts.status(later) == "queued"
    resume(acts, scope)
    assert claims(acts) == [job.id, later.id]


def test_a_job_that_runs_is_left_alone(acts: Acts) -> None:
    acts.submit()
    (claim,) = acts.claim()
    pause(acts, ALL)
    acts.succeed(claim)
    assert acts.status(claim) == "succeeded"


def test_other_kinds_and_workspaces_go_on(acts: Acts, workspaces: Workspaces) -> None:
    quiet, busy = workspaces(2)
    paused = acts.submit(workspace_id=quiet, kind="echo")
    others = {
        acts.submit(workspace_id=quiet, kind="other").id,
        acts.submit(workspace_id=busy, kind="echo").id,
    }
    scope = PauseScope(quiet, "echo")
    pause(acts, scope)
    assert set(claims(acts)) == others
    assert claims(acts) == []
    resume(acts, scope)
    assert claims(acts) == [paused.id]


def test_many_paused_workspaces_hide_no_other(acts: Acts, workspaces: Workspaces) -> None:
    *quiet, busy = sorted(workspaces(40))
    for workspace_id in quiet:
        acts.submit(workspace_id=workspace_id)
        pause(acts, PauseScope(workspace_id))
    jobs = [acts.submit(workspace_id=busy) for _ in range(2)]
    request = ClaimRequest("w", 1, LOCAL_POOL, kinds=KINDS)
    taken = [acts.kernel.now.claim(request)[0].id for _ in jobs]
    assert taken == [job.id for job in jobs]
    assert acts.kernel.now.claim(request) == []


def test_a_claimer_that_names_no_kinds_takes_none_of_a_paused_one(acts: Acts) -> None:
    job = acts.submit(kind="container")
    pause(acts, PauseScope(kind="container"))
    assert acts.claim() == []
    resume(acts, PauseScope(kind="container"))
    assert [claim.id for claim in acts.claim()] == [job.id]


def test_a_second_pause_changes_the_reason_and_keeps_the_time(acts: Acts) -> None:
    first = pause(acts, ALL, "bad release")
    acts.wait(60)
    second = pause(acts, ALL, "worse than we thought")
    assert second == first._replace(reason="worse than we thought")
    seen = acts.kernel.now.read(lambda reading: reading.queue_pauses.list_all())
    assert seen == [second]


def test_what_is_not_paused_cannot_be_resumed(acts: Acts) -> None:
    pause(acts, PauseScope(kind="echo"))
    with pytest.raises(NotFound):
        resume(acts, ALL)
    assert acts.kernel.now.read(paused_scopes) == [PauseScope(kind="echo")]


def test_the_number_of_pauses_is_limited(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "QUEUE_PAUSES_MAX", 1)
    pause(acts, ALL)
    pause(acts, ALL, "again")
    with pytest.raises(Conflict):
        pause(acts, PauseScope(kind="echo"))


def test_a_worker_that_drains_takes_nothing_and_the_others_go_on(acts: Acts) -> None:
    acts.kernel.now.note_worker(RunningWorker("w", "host", KINDS))
    job, _ = acts.submit(), pause(acts, PauseScope(worker="w"))
    assert claims(acts) == []
    assert acts.kernel.now.finish_and_claim(_claim_after_finish("w")).claims == []
    assert [claim.id for claim in acts.claim(owner="other")] == [job.id]


def test_a_worker_works_again_when_it_is_resumed(acts: Acts) -> None:
    acts.kernel.now.note_worker(RunningWorker("w", "host", KINDS))
    job, _ = acts.submit(), pause(acts, PauseScope(worker="w"))
    resume(acts, PauseScope(worker="w"))
    assert claims(acts) == [job.id]


def test_only_a_worker_that_is_known_can_drain(acts: Acts) -> None:
    with pytest.raises(NotFound):
        pause(acts, PauseScope(worker="w"))


def test_the_pause_of_a_worker_goes_with_it(acts: Acts) -> None:
    for name in ("w", "other"):
        acts.kernel.now.note_worker(RunningWorker(name, "host", KINDS))
        pause(acts, PauseScope(worker=name))
    pause(acts, PauseScope(kind="echo"))
    acts.kernel.now.forget_worker("w")
    acts.kernel.now.expire(True)
    left = acts.kernel.now.read(paused_scopes)
    assert set(left) == {PauseScope(worker="other"), PauseScope(kind="echo")}


def _claim_after_finish(owner: str) -> FinishAndClaim:
    return FinishAndClaim([], ClaimRequest(owner, 1, LOCAL_POOL, kinds=KINDS))
