"""The order of the queue: priority, then age, with ageing built into one number.

A job's rank is the moment of its submission, moved earlier for `high` and later for `low` by the
ageing span. Smaller goes first. So a job of a lower priority is overtaken by younger ones of the
next priority for at most that span, and a plain ascending index is the whole order of the queue.
"""

from ade.domain.job import Priority
from ade.domain.units import MICROSECONDS

_BUILDS_FIRST = 1 << 60
_STEP = {Priority.HIGH: -1, Priority.NORMAL: 0, Priority.LOW: 1}


def rank(priority: Priority, submitted_at_us: int, ageing_seconds: float) -> int:
    """Return the rank of a job of this priority that is submitted at this time."""
    return submitted_at_us + _STEP[priority] * int(ageing_seconds * MICROSECONDS)


def build_rank(submitted_at_us: int) -> int:
    """Return the rank of a build: before every other job, which may be waiting for it.

    It is negative, and jobs with a negative rank are not counted as waiting: a build takes no place
    in the queue beside the run that brought it.
    """
    return submitted_at_us - _BUILDS_FIRST


def share_places(workspaces: list[str], places: int) -> list[tuple[str, int]]:
    """Share places evenly among workspaces, so that a long queue takes no other's places."""
    if not workspaces or places <= 0:
        return []
    each, left_over = divmod(places, len(workspaces))
    shares = [(ws, each + (index < left_over)) for index, ws in enumerate(workspaces)]
    return [(ws, count) for ws, count in shares if count > 0]
