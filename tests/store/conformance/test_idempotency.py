"""Idempotency keys: a client that lost our answer asks again and gets the same one."""

from typing import Any

import pytest
from tests.store.acts import Acts, submission

from ade.domain.errors import IdempotencyInFlight, IdempotencyKeyReused, QueueFull
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.submit.model import Accepted, Idempotency, Submission
from ade.store.port import Store
from ade.store.rows import IdempotencyRow

DAY = 24 * 3600


def answer(accepted: Accepted) -> tuple[int, str]:
    return (202, f'{{"id": "{accepted.job.id}"}}')


def asked(
    key: str = "k", body: str = "sha256:1", *, waits: bool = False, **changes: Any
) -> Submission:
    stored = None if waits else answer
    return submission(idempotency=Idempotency("me", "POST /jobs", key, body, stored), **changes)


def test_the_same_request_gets_the_same_answer(acts: Acts) -> None:
    first = acts.kernel.now.submit(asked())
    again = acts.kernel.now.submit(asked())
    assert first.replayed is None
    assert again.replayed == answer(first)
    assert again.job.id == first.job.id
    assert len(acts.everything()) == 1


def test_the_answer_is_the_first_one_whatever_became_of_the_job(acts: Acts) -> None:
    first = acts.kernel.now.submit(asked())
    (claim,) = acts.claim()
    acts.succeed(claim)
    assert acts.kernel.now.submit(asked()).replayed == answer(first)


def test_another_body_is_refused(acts: Acts) -> None:
    acts.kernel.now.submit(asked())
    with pytest.raises(IdempotencyKeyReused, match="another request body"):
        acts.kernel.now.submit(asked(body="sha256:2"))
    assert len(acts.everything()) == 1


@pytest.mark.parametrize("other", ["principal", "endpoint", "key"])
def test_the_key_is_one_principals_at_one_endpoint(acts: Acts, other: str) -> None:
    parts = {"principal": "me", "endpoint": "POST /jobs", "key": "k"}
    acts.kernel.now.submit(asked())
    elsewhere = Idempotency(**parts | {other: "other"}, body_digest="sha256:2", answer=answer)
    assert acts.kernel.now.submit(submission(idempotency=elsewhere)).replayed is None
    assert len(acts.everything()) == 2


def test_repetitions_in_one_group(acts: Acts) -> None:
    group = [asked(), asked(), asked(body="sha256:2"), asked(key="other")]
    first, again, reused, other = acts.kernel.now.many("submit", group)
    assert again.replayed == answer(first)
    assert isinstance(reused, IdempotencyKeyReused)
    assert other.replayed is None
    assert len(acts.everything()) == 2


def test_a_request_that_waits_is_in_flight_until_answered(acts: Acts) -> None:
    first = acts.kernel.now.submit(asked(waits=True))
    with pytest.raises(IdempotencyInFlight):
        acts.kernel.now.submit(asked(waits=True))
    row = IdempotencyRow(
        first.job.workspace_id, "me", "POST /jobs", "k", "", 200, "{}", first.job.id, 0
    )
    acts.kernel.now.record_response(row)
    assert acts.kernel.now.submit(asked(waits=True)).replayed == (200, "{}")
    acts.kernel.now.record_response(row._replace(response_status=500))
    assert acts.kernel.now.submit(asked(waits=True)).replayed == (200, "{}")


def test_if_the_answering_server_died_the_job_tells(acts: Acts) -> None:
    acts.kernel.now.submit(asked(waits=True))
    (claim,) = acts.claim()
    acts.succeed(claim)
    again = acts.kernel.now.submit(asked(waits=True))
    assert again.replayed is None
    assert (again.job.id, again.job.status) == (claim.id, "succeeded")


def test_a_key_is_forgotten_after_a_day(acts: Acts) -> None:
    first = acts.kernel.now.submit(asked())
    acts.wait(DAY)
    assert acts.kernel.now.submit(asked()).replayed == answer(first)
    acts.wait(1)
    again = acts.kernel.now.submit(asked(body="sha256:2"))
    assert again.replayed is None
    assert again.job.id != first.job.id


def test_a_refusal_leaves_no_trace(store: Store, acts: Acts) -> None:
    full = Kernel(store, KernelSettings(queue_size=1))
    first, again, other = full.now.many("submit", [submission(), asked(), asked()])
    assert isinstance(first, Accepted)
    assert isinstance(again, QueueFull)
    assert isinstance(other, QueueFull)
    acts.claim()
    assert full.now.submit(asked()).replayed is None


def test_a_deduplicated_answer_is_remembered_too(acts: Acts) -> None:
    first = acts.submit(execution_key="sha256:k")
    again = acts.kernel.now.submit(asked(execution_key="sha256:k"))
    assert again.deduplicated
    assert acts.kernel.now.submit(asked()).replayed == answer(again)
    assert again.job.id == first.id


def test_the_job_of_a_key_may_be_gone(store: Store, acts: Acts) -> None:
    acts.kernel.now.submit(asked())
    (claim,) = acts.claim()
    acts.succeed(claim)
    brief = Kernel(store, KernelSettings(queue_size=0, retain_seconds=60))
    acts.wait(120)
    from ade.stages.retain import Retain

    assert len(brief.now.retain(Retain(claim.workspace_id))) == 1
    with pytest.raises(IdempotencyKeyReused, match="deleted"):
        acts.kernel.now.submit(asked())
