"""Lists and counts by any filters are what a look at all jobs says, page by page."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from tests.databases import WORKSPACE, SqlDatabase
from tests.store.acts import Acts, failure

from ade.clock import ManualClock
from ade.domain.job import Priority
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.rows import JobRow
from ade.store.session import Session

JOBS = 40
PAGE = 3
TRIES = 60


@pytest.fixture
def acts(sql_database: SqlDatabase, clock: ManualClock) -> Acts:
    """Submit jobs of several kinds, and bring them to several statuses."""
    acts = Acts(Kernel(sql_database.open(clock), KernelSettings(queue_size=0)), clock)
    chance = random.Random(7)
    for number in range(JOBS):
        acts.submit(
            kind=chance.choice(["echo", "other"]),
            priority=chance.choice(list(Priority)),
            target_id=chance.choice([None, None, "one", "two"]),
            payload=f'{{"n": {number}}}',
        )
        acts.wait(30)
        if number % 2:
            for claim in acts.claim():
                if chance.random() < 0.5:
                    acts.finish(claim, failure())
                elif chance.random() < 0.7:
                    acts.succeed(claim)
    return acts


def _pages(store: Session, filters: dict[str, Any]) -> Iterator[JobRow]:
    before: str | None = None
    while page := store.read(
        lambda reading, last=before: reading.list_jobs(WORKSPACE, filters, last, PAGE)  # type: ignore[misc]
    ):
        yield from page
        before = page[-1].id


def _matches(job: JobRow, filters: dict[str, Any]) -> bool:
    for name, wanted in filters.items():
        if name == "submitted_after":
            is_right = job.submitted_at > wanted
        elif name == "submitted_before":
            is_right = job.submitted_at < wanted
        else:
            values = wanted if isinstance(wanted, tuple) else (wanted,)
            is_right = getattr(job, name) in values
        if not is_right:
            return False
    return True


def test_any_filters_find_what_matches(acts: Acts) -> None:
    store = acts.kernel.store
    assert isinstance(store, Session)
    jobs = acts.everything()
    assert len({job.status for job in jobs}) >= 4
    chance = random.Random(11)
    values: dict[str, list[Any]] = {
        "status": ["queued", "running", "failed", "succeeded", "paused", "timed_out"],
        "kind": ["echo", "other", "unknown"],
        "priority": [priority.value for priority in Priority],
        "target_id": ["one", "two", "three"],
        "submitted_after": [job.submitted_at for job in jobs[::7]],
        "submitted_before": [job.submitted_at for job in jobs[::7]],
    }
    tried = 0
    for _ in range(TRIES):
        filters: dict[str, Any] = {}
        for name in chance.sample(list(values), chance.randint(0, 3)):
            some = chance.sample(values[name], chance.randint(1, 2))
            is_time = name.startswith("submitted")
            filters[name] = some[0] if is_time or len(some) == 1 else tuple(some)
        right = [job for job in jobs if _matches(job, filters)]
        assert list(_pages(store, filters)) == right, filters
        counts = store.read(lambda reading, of=filters: reading.count_jobs(WORKSPACE, of))  # type: ignore[misc]
        assert counts == Counter(job.status for job in right), filters
        tried += bool(right)
    assert tried > TRIES / 4  # most of them are not empty
