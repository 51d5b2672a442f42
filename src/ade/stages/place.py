"""Where a job waits: may it be claimed now, or does it wait for a time, a build or its lane?"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ade.store.port import Transaction
from ade.store.rows import JobRef, Lane

if TYPE_CHECKING:
    from ade.stages.submit import Submission


@dataclass(frozen=True, slots=True)
class Place:
    """Say whether a job may be claimed now, and whether its time is still to come."""

    eligible: bool
    in_future: bool = False


_AT_ONCE = Place(eligible=True)


def place(tx: Transaction, asked: list[Submission]) -> list[Place]:
    """Find a place for each submission, in order: the first on a free lane takes it."""
    if not any(ask.target_id or ask.build_id or ask.not_before for ask in asked):
        return [_AT_ONCE] * len(asked)  # nothing to wait for, as for most jobs
    if any(ask.target_id is not None and ask.build_id is not None for ask in asked):
        raise ValueError("a job waits for its lane or for a build, not for both")
    taken = _taken_lanes(tx, asked)
    settled = settled_builds(tx, [(ask.workspace_id, ask.build_id) for ask in asked])
    places = []
    for ask in asked:
        if ask.not_before is not None and ask.not_before > tx.now_us:
            places.append(Place(eligible=False, in_future=True))
        elif ask.build_id is not None:
            places.append(Place(eligible=ask.build_id in settled))
        elif ask.target_id is not None:
            lane = Lane(ask.workspace_id, ask.target_id)
            places.append(Place(eligible=lane not in taken))
            taken.add(lane)
        else:
            places.append(_AT_ONCE)
    return places


def _taken_lanes(tx: Transaction, asked: list[Submission]) -> set[Lane]:
    lanes = {Lane(ask.workspace_id, ask.target_id) for ask in asked if ask.target_id is not None}
    if not lanes:
        return set()
    tx.lock_lanes(list(lanes))
    return tx.held_lanes(list(lanes))


def settled_builds(tx: Transaction, builds: Iterable[tuple[str, str | None]]) -> set[str]:
    """Find which builds are terminal, so that nobody needs to wait for them."""
    refs = {JobRef(workspace_id, id_) for workspace_id, id_ in builds if id_ is not None}
    return tx.builds.settled(list(refs)) if refs else set()
