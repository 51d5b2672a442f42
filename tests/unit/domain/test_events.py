"""The words of a job's log."""

from ade.domain.events import ENDS_ATTEMPT, OF_STATUS, SENT_BY_WORKERS, STARTS_ATTEMPT, EventType
from ade.domain.job import Status


def test_every_status_but_running_has_the_event_of_its_name() -> None:
    assert set(OF_STATUS) == set(Status) - {Status.RUNNING}
    for status, event in OF_STATUS.items():
        assert event.value == f"job.{status.value}"


def test_what_starts_or_ends_an_attempt_is_never_said_by_a_worker() -> None:
    assert not STARTS_ATTEMPT & ENDS_ATTEMPT
    assert not SENT_BY_WORKERS & (STARTS_ATTEMPT | ENDS_ATTEMPT)
    assert not SENT_BY_WORKERS & set(OF_STATUS.values())


def test_a_worker_cannot_take_the_kernels_words() -> None:
    assert all(event.value.startswith("worker.") for event in SENT_BY_WORKERS)
    assert all(not e.value.startswith("worker.") for e in set(EventType) - SENT_BY_WORKERS)
