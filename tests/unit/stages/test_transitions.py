"""Every change of status passes the transition table."""

import pytest

from ade.domain.errors import InvalidTransition
from ade.domain.job import TRANSITIONS, Cause, Status
from ade.stages.transitions import checked_cause


def test_a_change_that_is_in_the_table_records_its_cause() -> None:
    for one in TRANSITIONS:
        assert checked_cause(one.source, one.target, one.cause) == one.cause.value


@pytest.mark.parametrize(
    ("source", "target", "cause"),
    [
        (Status.SUCCEEDED, Status.QUEUED, Cause.RESUMED),
        (Status.QUEUED, Status.SUCCEEDED, Cause.FINISHED),
        (Status.RUNNING, Status.SUCCEEDED, Cause.TIMEOUT),
        (None, Status.RUNNING, Cause.CLAIMED),
        (Status.QUEUED, Status.QUEUED, Cause.ACCEPTED),
    ],
)
def test_any_other_change_is_refused(source: Status | None, target: Status, cause: Cause) -> None:
    with pytest.raises(InvalidTransition, match=f"cannot become {target.value}"):
        checked_cause(source, target, cause)
