"""A claimer that must stop at a known time takes no job that could run for longer."""

from dataclasses import replace

from tests.store.acts import LIMITS, Acts

from ade.stages.claim import ClaimRequest


def test_longer_jobs_are_left_for_others(acts: Acts) -> None:
    long = acts.submit(limits=replace(LIMITS, timeout_ms=60_000))
    short = acts.submit(limits=replace(LIMITS, timeout_ms=1_000))
    now = acts.kernel.now
    taken = now.claim(ClaimRequest("pilot", 5, timeout_ms_max=1_000))
    assert [claim.id for claim in taken] == [short.id]
    assert now.claim(ClaimRequest("pilot", 5, timeout_ms_max=0)) == []
    taken = now.claim(ClaimRequest("worker", 5))
    assert [claim.id for claim in taken] == [long.id]
