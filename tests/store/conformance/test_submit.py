"""Submitting: what is written, where a job waits, and which submissions are the same work."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.databases import WORKSPACE
from tests.store.acts import LIMITS, Acts, failure, ref, submission

from ade.domain.errors import QueueFull, SafeMode
from ade.domain.job import Priority, Status
from ade.domain.units import MICROSECONDS
from ade.kernel import Kernel
from ade.stages.kernel_settings import KernelSettings
from ade.store.port import Store
from ade.store.rows import JobRow

KEY = "sha256:" + "a" * 64
OTHER_KEY = "sha256:" + "b" * 64


def test_an_accepted_job_is_queued_and_remembers_everything(acts: Acts) -> None:
    job = acts.submit(
        payload='{"value": "ü\\u0000"}', priority=Priority.HIGH, rerun_of=WORKSPACE, retries=5
    )
    found = acts.job(job)
    assert found == job
    assert (found.status, found.eligible, found.priority) == ("queued", 1, "high")
    assert (found.fence, found.retries_left, found.event_seq) == (0, 5, 1)
    assert found.submitted_at == acts.clock.now_us()
    assert (found.submitted_by, found.rerun_of) == ("someone", WORKSPACE)
    assert json.loads(found.limits)["timeout_ms"] == found.timeout_ms == 60_000
    payload = acts.kernel.now.read(lambda reading: reading.read_payload(ref(job)))
    assert payload == '{"value": "ü\\u0000"}'
    assert acts.log(job) == ["queued"]
    assert acts.result(job) is None


@pytest.mark.parametrize(
    "text", ['"', "\\", "{}", "NULL", "", "a,b", "it's", "line\nline", "日本", "100%s", "?", ":x"]
)
def test_no_text_is_special(acts: Acts, text: str) -> None:
    job = acts.submit(payload=text, submitted_by=text, target_id=text or None)
    assert acts.job(job).submitted_by == text
    assert acts.job(job).target_id == (text or None)
    assert acts.kernel.now.read(lambda reading: reading.read_payload(ref(job))) == text


def test_many_at_once_keep_their_order(acts: Acts) -> None:
    asks = [submission(payload=str(number)) for number in range(50)]
    jobs = [outcome.job for outcome in acts.kernel.now.many("submit", asks)]
    assert [job.id for job in jobs] == sorted(job.id for job in jobs)
    assert [claim.id for claim in acts.claim(100)] == [job.id for job in jobs]


def payload_of(acts: Acts, job: JobRow) -> str | None:
    return acts.kernel.now.read(lambda reading: reading.read_payload(ref(job)))


@pytest.mark.parametrize("count", [1, 9, 123])
def test_many_that_differ_in_anything_are_each_remembered(acts: Acts, count: int) -> None:
    texts = ['"', "\\", "{}", "NULL", "", "a,b", "it's", "line\nline", "日本", "100%s", "?", ":x"]
    priorities = list(Priority)
    asks = [
        submission(
            payload=texts[number % len(texts)],
            submitted_by=texts[number % 5] or "someone",
            limits=replace(LIMITS, timeout_ms=1000 + number % 3),
            priority=priorities[number % len(priorities)],
            execution_key=None if number % 4 == 0 else f"sha256:{number:064d}",
            rerun_of=WORKSPACE if number % 2 else None,
            retries=number % 6,
        )
        for number in range(count)
    ]
    for asked in (asks, [ask._replace(execution_key=None) for ask in asks]):
        jobs = [outcome.job for outcome in acts.kernel.now.many("submit", asked)]
        for job, ask in zip(jobs, asked, strict=True):
            assert acts.job(job) == job
            assert (job.submitted_by, job.timeout_ms) == (ask.submitted_by, ask.limits.timeout_ms)
            assert (job.priority, job.retries_left) == (ask.priority, ask.retries)
            assert (job.execution_key, job.rerun_of) == (ask.execution_key, ask.rerun_of)
            assert payload_of(acts, job) == ask.payload
            assert acts.log(job) == ["queued"]


def test_safe_mode_refuses_and_leaves_no_row(store: Store, acts: Acts) -> None:
    safe = Kernel(store, KernelSettings(safe_mode=True))
    with pytest.raises(SafeMode, match="ADE_SAFE_MODE is enabled"):
        safe.now.submit(submission())
    assert acts.everything() == []


def test_nothing_is_claimed_in_safe_mode(store: Store, acts: Acts) -> None:
    acts.submit()
    assert Acts(Kernel(store, KernelSettings(safe_mode=True)), acts.clock).claim() == []


# --- delayed start


def test_a_job_with_a_time_waits_for_it(acts: Acts) -> None:
    job = acts.submit(not_before=acts.clock.now_us() + 60 * MICROSECONDS)
    assert (job.status, job.eligible) == ("pending", 0)
    assert acts.log(job) == ["pending"]
    acts.wait(30)
    acts.kernel.now.expire()
    assert acts.claim() == []
    acts.wait(30)
    assert acts.kernel.now.expire().due == 1
    assert acts.log(job) == ["pending", "queued"]
    assert [claim.id for claim in acts.claim()] == [job.id]


def test_a_time_that_has_passed_is_now(acts: Acts) -> None:
    job = acts.submit(not_before=acts.clock.now_us() - 1)
    assert (job.status, job.eligible, job.not_before) == ("queued", 1, None)


# --- the same work


def test_a_live_job_is_joined(acts: Acts) -> None:
    first = acts.accept(execution_key=KEY)
    again = acts.accept(execution_key=KEY)
    assert not first.deduplicated
    assert again.deduplicated
    assert again.job.id == first.job.id
    acts.claim()
    assert acts.accept(execution_key=KEY).job.status == Status.RUNNING
    assert len(acts.everything()) == 1


@pytest.mark.parametrize("pause_first", [False, True])
def test_a_paused_or_pending_job_is_joined(acts: Acts, pause_first: bool) -> None:
    job = acts.submit(execution_key=KEY, not_before=acts.clock.now_us() + MICROSECONDS)
    if pause_first:
        acts.pause(job)
    assert acts.submit(execution_key=KEY).id == job.id


def test_a_succeeded_job_answers_at_once(acts: Acts) -> None:
    claim = acts.start(execution_key=KEY)
    acts.succeed(claim, answer=42)
    again = acts.accept(execution_key=KEY)
    assert again.deduplicated
    assert (again.job.id, again.job.status) == (claim.id, "succeeded")
    assert acts.claim() == []


def test_a_failed_job_is_replaced(acts: Acts) -> None:
    claim = acts.start(execution_key=KEY)
    acts.finish(claim, failure())
    again = acts.accept(execution_key=KEY)
    assert not again.deduplicated
    assert again.job.id != claim.id
    assert acts.accept(execution_key=KEY).job.id == again.job.id


def test_a_failed_job_is_returned_with_reuse_failed(acts: Acts) -> None:
    claim = acts.start(execution_key=KEY)
    acts.finish(claim, failure())
    again = acts.accept(execution_key=KEY, reuse_failed=True)
    assert again.deduplicated
    assert again.job.id == claim.id


def test_a_cancelled_job_is_replaced_also_with_reuse_failed(acts: Acts) -> None:
    job = acts.submit(execution_key=KEY)
    acts.cancel(job)
    assert acts.submit(execution_key=KEY, reuse_failed=True).id != job.id


def test_a_refused_replacement_does_not_make_the_failure_forgotten(
    store: Store, acts: Acts
) -> None:
    claim = acts.start(execution_key=KEY)
    acts.finish(claim, failure())
    acts.submit()
    full = Kernel(store, KernelSettings(queue_size=1))
    (refused,) = full.now.many("submit", [submission(execution_key=KEY)])
    assert refused.code == "run_queue_full"
    assert acts.accept(execution_key=KEY, reuse_failed=True).job.id == claim.id


def test_a_refused_job_stands_for_nothing(store: Store, acts: Acts) -> None:
    small = Kernel(store, KernelSettings(queue_size=1))
    asks = [submission(execution_key=KEY), submission(execution_key=OTHER_KEY)]
    accepted, refused = small.now.many("submit", asks)
    assert isinstance(refused, QueueFull)
    again = acts.kernel.now.submit(submission(execution_key=OTHER_KEY))
    assert not again.deduplicated
    assert acts.kernel.now.submit(submission(execution_key=KEY)).job.id == accepted.job.id


def test_duplicates_in_one_group_are_one_job(acts: Acts) -> None:
    asks = [submission(execution_key=key) for key in (KEY, OTHER_KEY, KEY, KEY)]
    first, other, second, third = acts.kernel.now.many("submit", asks)
    assert [a.deduplicated for a in (first, other, second, third)] == [False, False, True, True]
    assert first.job.id == second.job.id == third.job.id != other.job.id
    assert len(acts.everything()) == 2


def test_duplicates_of_a_failed_job_share_its_replacement(acts: Acts) -> None:
    claim = acts.start(execution_key=KEY)
    acts.finish(claim, failure())
    first, second = acts.kernel.now.many("submit", [submission(execution_key=KEY)] * 2)
    assert first.job.id == second.job.id != claim.id


def test_dedupe_can_be_declined(acts: Acts) -> None:
    first = acts.submit(execution_key=KEY)
    second = acts.accept(execution_key=KEY, dedupe=False)
    assert not second.deduplicated
    assert second.job.id != first.id
    assert acts.submit(execution_key=KEY).id == first.id


def test_workspaces_do_not_share_work(acts: Acts, workspaces: Callable[[int], list[str]]) -> None:
    (elsewhere,) = workspaces(1)
    first = acts.submit(execution_key=KEY)
    second = acts.accept(execution_key=KEY, workspace_id=elsewhere)
    assert not second.deduplicated
    assert second.job.id != first.id
