"""The files that results name: seen with the result, under its fence, gone with the job."""

from dataclasses import replace

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import INTERNAL, Acts, failure, ref, success

from ade.clock import ManualClock
from ade.domain.errors import LeaseLost
from ade.domain.job import Status
from ade.domain.outcome import Artifact, Outcome
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.stages.retain import Retain
from ade.store.port import Store
from ade.store.rows import ArtifactRow, Claim

FILE = Artifact(
    id="0198a000-0000-7000-8000-0000000000a1",
    name="figure-1.png",
    kind="plot",
    format="png",
    digest="sha256:" + "ab" * 32,
    size_bytes=2**40,
    uri="blob:sha256:" + "ab" * 32,
    content_type="image/png",
)


def named(acts: Acts, *claims: Claim) -> list[ArtifactRow]:
    """List which files the results of jobs name."""
    return acts.kernel.now.read(
        lambda reading: [row for claim in claims for row in reading.read_artifacts(ref(claim))]
    )


def with_files(outcome: Outcome, *ids: str) -> Outcome:
    """Let an outcome name files."""
    files = [replace(FILE, id=FILE.id[:-1] + one, name=f"{one}.png") for one in ids]
    return replace(outcome, artifacts=tuple(files))


def test_a_result_and_its_files_are_recorded_together(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, with_files(success(), "1", "2"))
    assert [(row.job_id, row.name, row.size_bytes) for row in named(acts, claim)] == [
        (claim.id, "1.png", 2**40),
        (claim.id, "2.png", 2**40),
    ]


def test_a_worker_that_lost_the_lease_records_no_artifact(acts: Acts) -> None:
    first = acts.start()
    acts.lose(first)
    (second,) = acts.claim()
    with pytest.raises(LeaseLost):
        acts.finish(first, with_files(success(), "1"))
    assert named(acts, first) == []
    acts.finish(second, with_files(success(), "2"))
    assert [row.name for row in named(acts, first)] == ["2.png"]


def test_an_attempt_that_is_tried_again_names_nothing(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, with_files(INTERNAL, "1"))
    assert named(acts, claim) == []


def test_a_second_end_replaces_the_files_of_the_first(acts: Acts) -> None:
    claim = acts.start(target_id="t")
    acts.finish(claim, with_files(failure(), "1"))
    assert [row.name for row in named(acts, claim)] == ["1.png"]
    acts.resume(claim)
    (again,) = acts.claim()
    acts.finish(again, with_files(success(), "2"))
    assert [row.name for row in named(acts, claim)] == ["2.png"]


@pytest.mark.parametrize("status", [Status.PAUSED, Status.CANCELLED])
def test_a_stopped_attempt_keeps_result_and_files(acts: Acts, status: Status) -> None:
    claim = acts.start()
    stopped = Outcome(status, result={"outputs": {"stdout": "before"}})
    acts.finish(claim, with_files(stopped, "1"))
    assert acts.result(claim) == {"outputs": {"stdout": "before"}}
    assert [row.name for row in named(acts, claim)] == ["1.png"]


def test_a_paused_job_that_was_then_asked_to_cancel_keeps_its_files(acts: Acts) -> None:
    claim = acts.start()
    acts.pause(claim)
    acts.cancel(claim)
    acts.finish(claim, with_files(Outcome(Status.PAUSED, result={"a": 1}), "1"))
    assert (acts.status(claim), acts.result(claim)) == ("cancelled", {"a": 1})
    assert [row.name for row in named(acts, claim)] == ["1.png"]


def test_cancelling_a_paused_job_keeps_what_it_left(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, with_files(Outcome(Status.PAUSED, result={"a": 1}), "1"))
    acts.cancel(claim)
    assert (acts.status(claim), acts.result(claim)) == ("cancelled", {"a": 1})
    assert [row.name for row in named(acts, claim)] == ["1.png"]


def test_the_next_end_of_a_paused_job_replaces_its_files(acts: Acts) -> None:
    claim = acts.start()
    acts.finish(claim, with_files(Outcome(Status.PAUSED, result={"a": 1}), "1"))
    acts.resume(claim)
    assert acts.result(claim) is None
    (again,) = acts.claim()
    acts.finish(again, with_files(success(), "2"))
    assert [row.name for row in named(acts, claim)] == ["2.png"]


def test_files_go_with_their_job(store: Store, clock: ManualClock, acts: Acts) -> None:
    brief = Acts(Kernel(store, KernelSettings(queue_size=0, retain_seconds=60)), clock)
    old = brief.start()
    brief.finish(old, with_files(success(), "1"))
    brief.wait(61)
    new = brief.start()
    brief.finish(new, with_files(success(), "2"))
    assert brief.kernel.now.retain(Retain(WORKSPACE)) == [ref(old)]
    assert [row.name for row in named(brief, old, new)] == ["2.png"]
