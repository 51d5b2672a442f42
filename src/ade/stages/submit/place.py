"""Decide whether a new job may be claimed at once, or waits for a time, a build or its lane."""

from dataclasses import dataclass

from ade.stages.builds import settled_builds
from ade.stages.submit.model import Submission
from ade.store.port import Transaction
from ade.store.rows import Lane


@dataclass(frozen=True, slots=True)
class Placement:
    """Say whether a job may be claimed now, and whether its start time is still to come."""

    eligible: bool
    in_future: bool = False


_AT_ONCE = Placement(eligible=True)


def place(tx: Transaction, submissions: list[Submission]) -> list[Placement]:
    """Place each submission, in order: the first on a free lane takes the lane."""
    if not any(one.target_id or one.build_id or one.not_before for one in submissions):
        return [_AT_ONCE] * len(submissions)  # nothing to wait for, as for most jobs
    if any(one.target_id is not None and one.build_id is not None for one in submissions):
        raise ValueError("a job waits for its lane or for a build, not for both")
    taken = _taken_lanes(tx, submissions)
    settled = settled_builds(tx, [(one.workspace_id, one.build_id) for one in submissions])
    placements = []
    for one in submissions:
        if one.not_before is not None and one.not_before > tx.now_us:
            placements.append(Placement(eligible=False, in_future=True))
        elif one.build_id is not None:
            placements.append(Placement(eligible=settled.lets_start(one.build_id)))
        elif one.target_id is not None:
            lane = Lane(one.workspace_id, one.target_id)
            placements.append(Placement(eligible=lane not in taken))
            taken.add(lane)
        else:
            placements.append(_AT_ONCE)
    return placements


def _taken_lanes(tx: Transaction, submissions: list[Submission]) -> set[Lane]:
    lanes = {
        Lane(one.workspace_id, one.target_id) for one in submissions if one.target_id is not None
    }
    if not lanes:
        return set()
    tx.lock_lanes(list(lanes))
    return tx.held_lanes(list(lanes))
