"""The types of the events in a job's log."""

import pytest

from ade.domain.events import ENDS_ATTEMPT, STARTS_ATTEMPT, EventType, event_type
from ade.domain.job import TRANSITIONS, WAIT_ENDS, Cause, Status, Transition

REPORTED = {event for event in EventType if event.value.startswith("worker.")}
CHANGES = [one for one in (*TRANSITIONS, *WAIT_ENDS) if one.target is not Status.RUNNING]
NAMED_AFTER_THEIR_CAUSE = {
    (Status.QUEUED, Cause.LEASE_LOST): "job.lost",
    (Status.QUEUED, Cause.RETRIED): "job.retried",
    (Status.QUEUED, Cause.RELEASED): "job.released",
    (Status.QUEUED, Cause.RESUMED): "job.resumed",
    (Status.SUCCEEDED, Cause.RESOLVED): "job.resolved",
}


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_a_change_has_the_event_of_its_status_or_of_its_cause(change: Transition) -> None:
    of_status = f"job.{change.target.value}"
    expected = NAMED_AFTER_THEIR_CAUSE.get((change.target, change.cause), of_status)
    assert event_type(change.target, change.cause).value == expected


def test_what_starts_or_ends_an_attempt_is_never_reported_by_a_worker() -> None:
    assert not STARTS_ATTEMPT & ENDS_ATTEMPT
    assert not REPORTED & (STARTS_ATTEMPT | ENDS_ATTEMPT)
    assert not REPORTED & {event_type(change.target, change.cause) for change in CHANGES}
