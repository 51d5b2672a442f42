"""Builds are jobs: runs wait until theirs has ended, whichever way, and never longer."""

import json
from typing import Any

import pytest
from tests.databases import WORKSPACE, Database
from tests.store.acts import INTERNAL, Acts, failure, held, ref, submission, success

from ade.clock import ManualClock
from ade.domain.build import KIND
from ade.domain.errors import InvalidTransition, QueueFull
from ade.domain.job import Priority, Status
from ade.domain.outcome import Category, Outcome
from ade.domain.output import Piece, batch_of
from ade.kernel import Kernel
from ade.stages.builds import RequiredBuild
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.output import OutputAppend
from ade.stages.retain import Retain
from ade.stages.submit.model import Accepted, Submission
from ade.store.port import Store, Transaction
from ade.store.rows import Activation, Build, Claim, JobRow, Version

CONFIGURATION = "0198c000-0000-7000-8000-000000000001"
DOCUMENT = "0198c000-0000-7000-8000-000000000002"
LIMITS = submission().limits
RUN_PAYLOAD = '{"inputs": {"document_id": "d"}}'


def version(digest: str = "sha256:v1") -> Version:
    """Read a draft as a version that was not made yet."""
    return Version(WORKSPACE, "", CONFIGURATION, 0, digest, "[]", "someone", 0)


def required(draft: Version, **changes: Any) -> RequiredBuild:
    """Require the build of a version."""
    made = RequiredBuild(draft, f"print of {draft.digest}", LIMITS, retries=2, has_work=True)
    return made._replace(**changes)


def made(environment: str | None = None) -> Outcome:
    """Make the outcome of a ready build."""
    return success(outputs={"result_json": {"environment": environment}})


class Site:
    """Submit runs and activations, and do the work of builds."""

    def __init__(self, acts: Acts, database: Database) -> None:
        self.acts = acts
        common = {"workspace_id": WORKSPACE, "created_at": 0}
        database.insert("configurations", id=CONFIGURATION, name="c", **common)
        database.insert(
            "documents", id=DOCUMENT, name="d", digest="sha256:d", size_bytes=1, **common
        )

    def run_submission(self, draft: Version, **changes: Any) -> Submission:
        """Ask for a run of a version."""
        asked = {name: changes.pop(name) for name in ("has_work", "rebuild") if name in changes}
        return submission(
            kind="normalize",
            payload=RUN_PAYLOAD,
            configuration_id=CONFIGURATION,
            document_id=DOCUMENT,
            required=required(draft, **asked),
            **changes,
        )

    def accept(self, draft: Version | None = None, **changes: Any) -> Accepted:
        """Submit a run."""
        self.acts.wait()
        asked = self.run_submission(draft or version(), **changes)
        accepted: Accepted = self.acts.kernel.now.submit(asked)
        return accepted

    def run(self, draft: Version | None = None, **changes: Any) -> JobRow:
        """Submit a run and return its job."""
        return self.accept(draft, **changes).job

    def activate(self, draft: Version, by: str = "someone", **changes: Any) -> Accepted:
        """Activate a version."""
        self.acts.wait()
        asked = submission(
            kind=KIND,
            submitted_by=by,
            configuration_id=CONFIGURATION,
            required=required(draft, activate=True, **changes),
        )
        accepted: Accepted = self.acts.kernel.now.submit(asked)
        return accepted

    def claim_build(self) -> Claim:
        """Claim a job, which must be a build."""
        (claim,) = self.acts.claim()
        assert claim.kind == KIND
        return claim

    def build(self, outcome: Outcome | None = None) -> Claim:
        """Do the work of the next build."""
        claim = self.claim_build()
        self.acts.finish(claim, outcome or made())
        return claim

    def builds(self, accepted: Accepted) -> Build:
        """Read the build of a run as it is now."""
        assert accepted.ensured is not None
        found = self.acts.kernel.now.many("look", [accepted.ensured])
        build: Build | None = found[0]
        assert build is not None
        return build

    def activation(self) -> Activation | None:
        """Read which version is active."""
        found: Activation | None = self.acts.kernel.now.many("look_at_activation", [None])[0]
        return found


@pytest.fixture
def site(acts: Acts, database: Database) -> Site:
    """Prepare what runs need, and two ways to look at builds in a transaction of any store."""

    def look(tx: Transaction, ensured: list[Any]) -> list[Build | None]:
        return [tx.builds.lock_of(one.version, one.build.fingerprint) for one in ensured]

    def look_at_activation(tx: Transaction, _: list[Any]) -> list[Activation | None]:
        return [tx.builds.activation(WORKSPACE, CONFIGURATION)]

    vars(acts.kernel.verbs).update(look=look, look_at_activation=look_at_activation)
    return Site(acts, database)


def reason(acts: Acts, run: JobRow) -> tuple[str, str, str]:
    """Read why a run failed."""
    error = json.loads(acts.job(run).error or "{}")
    return error["category"], error["code"], error["message"]


def test_many_runs_wait_for_one_build_job(acts: Acts, site: Site) -> None:
    runs = [site.run() for _ in range(3)]
    assert [run.eligible for run in runs] == [0, 0, 0]
    claim = site.claim_build()
    assert acts.claim(9) == []
    acts.finish(claim, made())
    assert [claim.id for claim in acts.claim(9)] == [run.id for run in runs]
    builds = [job for job in acts.everything() if job.kind == KIND]
    assert [job.id for job in builds] == [claim.id]


def test_a_batch_of_runs_makes_one_version_and_one_build(acts: Acts, site: Site) -> None:
    asked = [site.run_submission(version()) for _ in range(20)]
    accepted = acts.kernel.now.many("submit", asked)
    assert len({one.ensured.build.id for one in accepted}) == 1
    assert {one.ensured.version.sequence for one in accepted} == {1}
    assert sum(job.kind == KIND for job in acts.everything()) == 1


def test_a_run_names_its_version_and_its_build(acts: Acts, site: Site) -> None:
    accepted = site.accept()
    assert accepted.ensured is not None
    payload = acts.kernel.now.read(lambda reading: reading.read_payload(ref(accepted.job)))
    assert json.loads(payload or "")["inputs"] == {
        "document_id": "d",
        "config_version_id": accepted.ensured.version.id,
        "build_id": accepted.job.build_id,
    }


def test_each_new_draft_is_the_next_version(site: Site) -> None:
    drafts = [version("sha256:a"), version("sha256:b"), version("sha256:a")]
    ensured = [site.accept(draft).ensured for draft in drafts]
    assert [one.version.sequence for one in ensured if one is not None] == [1, 2, 1]


def test_the_build_goes_before_what_waits_already(acts: Acts, site: Site) -> None:
    acts.submit(priority=Priority.HIGH)
    site.run()
    assert [claim.kind for claim in acts.claim(2)] == [KIND, "echo"]


def test_a_build_that_fails_fails_its_runs(acts: Acts, site: Site) -> None:
    run = site.run()
    site.build(failure())
    assert acts.status(run) == "failed"
    assert reason(acts, run) == ("DEPENDENCY_ERROR", "BUILD_FAILED", "build failed: It broke.")
    assert acts.last_event_data(run)["cause"] == "unrunnable"


def test_nothing_to_do_is_ready_at_once(acts: Acts, site: Site) -> None:
    accepted = site.accept(has_work=False)
    assert site.builds(accepted).status == "ready"
    assert [claim.id for claim in acts.claim(9)] == [accepted.job.id]


def test_a_run_of_a_ready_build_starts_at_once(acts: Acts, site: Site) -> None:
    first = site.accept()
    site.build(made("sha256:e"))
    acts.claim()
    run = site.run()
    assert run.eligible == 1
    assert site.builds(first).environment == "sha256:e"


def test_a_failure_of_the_configuration_is_remembered(acts: Acts, site: Site) -> None:
    site.run()
    site.build(failure())
    again = site.run()
    assert again.status == "failed"
    assert reason(acts, again)[2] == "build failed: It broke."
    assert acts.log(again) == ["queued", "failed"]
    assert acts.claim() == []


def test_running_again_makes_a_failed_build_again(acts: Acts, site: Site) -> None:
    first = site.accept()
    site.build(failure())
    run = site.run(rebuild=True)
    assert run.status == "queued"
    site.build()
    assert [claim.id for claim in acts.claim()] == [run.id]
    assert site.builds(first).status == "ready"


def test_a_failure_of_ade_is_tried_again_by_the_next_run(acts: Acts, site: Site) -> None:
    site.run()
    for _ in range(3):
        site.build(INTERNAL)
        acts.wait(60)
        acts.kernel.now.expire()
    assert acts.claim() == []
    run = site.run()
    assert run.status == "queued"
    site.build()
    assert acts.status(run) == "queued"
    assert acts.job(run).eligible == 1


def test_a_lost_builder_is_followed_by_another(acts: Acts, site: Site) -> None:
    accepted = site.accept()
    first = site.claim_build()
    acts.lose(first)
    assert site.builds(accepted).status == "queued"
    second = site.claim_build()
    assert (second.id, second.fence) == (first.id, first.fence + 1)
    assert site.builds(accepted).status == "building"
    acts.finish(second, made())
    assert site.builds(accepted).status == "ready"


def test_builders_that_are_always_lost_fail_the_build(acts: Acts, site: Site) -> None:
    accepted = site.accept()
    for _ in range(3):
        acts.lose(site.claim_build())
    build = site.builds(accepted)
    assert build.status == "failed"
    error = json.loads(build.error or "")
    assert (error["code"], "started 3 times" in error["message"]) == ("BUILDER_LOST", True)
    assert acts.status(accepted.job) == "failed"


def test_a_late_builder_changes_nothing(acts: Acts, site: Site) -> None:
    accepted = site.accept()
    late = site.claim_build()
    acts.lose(late)
    with pytest.raises(Exception, match="lease"):
        acts.finish(late, made("sha256:late"))
    assert site.builds(accepted).status == "queued"
    site.build(made("sha256:mine"))
    assert site.builds(accepted).environment == "sha256:mine"


def test_a_build_that_takes_too_long_fails(acts: Acts, site: Site) -> None:
    accepted = site.accept()
    late = failure(Category.RESOURCE_LIMIT)
    site.build(Outcome(Status.TIMED_OUT, error=late.error))
    assert site.builds(accepted).status == "failed"
    assert acts.status(accepted.job) == "failed"


@pytest.mark.parametrize("is_running", [False, True])
def test_cancelling_the_build_fails_its_runs(acts: Acts, site: Site, is_running: bool) -> None:
    accepted = site.accept()
    (build,) = [job for job in acts.everything() if job.kind == KIND]
    claim = site.claim_build() if is_running else None
    acts.cancel(build)
    if claim is not None:
        assert site.builds(accepted).status == "building"
        acts.finish(claim, Outcome(Status.CANCELLED))
    assert site.builds(accepted).status == "cancelled"
    assert reason(acts, accepted.job)[2] == "build failed: the build was cancelled."
    assert site.run().status == "queued"  # a cancelled build is made again
    site.build()
    assert site.builds(accepted).status == "ready"


def test_a_build_cannot_be_interrupted(acts: Acts, site: Site) -> None:
    site.run()
    (build,) = [job for job in acts.everything() if job.kind == KIND]
    with pytest.raises(InvalidTransition, match="Cancel it"):
        acts.pause(build)


@pytest.mark.parametrize("result", [None, {"outputs": {"stdout": "Resolved 3 packages"}}])
def test_a_build_that_was_stopped_has_no_report(acts: Acts, site: Site, result: Any) -> None:
    accepted = site.accept()
    claim = site.claim_build()
    acts.cancel(claim)
    acts.finish(claim, Outcome(Status.CANCELLED, result=result))
    assert site.builds(accepted).status == "cancelled"


def test_the_job_of_a_build_is_kept_as_long_as_its_build(
    store: Store, clock: ManualClock, database: Database
) -> None:
    acts = Acts(Kernel(store, KernelSettings(queue_size=0, retain_seconds=3600)), clock)
    site = Site(acts, database)
    first = site.activate(version())
    site.build()
    acts.succeed(acts.start())
    acts.wait(7200)
    acts.kernel.now.retain(Retain(WORKSPACE))
    assert [job.id for job in acts.everything()] == [first.job.id]
    again = site.activate(version())
    assert (again.job.id, again.deduplicated) == (first.job.id, True)


def test_a_cancelled_run_is_left_alone(acts: Acts, site: Site) -> None:
    run = site.run()
    acts.cancel(run)
    site.build()
    assert acts.status(run) == "cancelled"


@pytest.mark.parametrize("settled_first", [True, False])
def test_a_run_with_a_time_waits_for_both(acts: Acts, site: Site, settled_first: bool) -> None:
    run = site.run(not_before=acts.clock.now_us() + 60_000_000)
    if settled_first:
        site.build()
        assert acts.claim() == []
    acts.wait(61)
    acts.kernel.now.expire()
    if not settled_first:
        site.build()
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_a_run_whose_build_failed_before_its_time_fails_when_it_is_due(
    acts: Acts, site: Site
) -> None:
    run = site.run(not_before=acts.clock.now_us() + 60_000_000)
    site.build(failure())
    late = site.run(not_before=acts.clock.now_us() + 60_000_000)
    assert [acts.status(one) for one in (run, late)] == ["pending", "pending"]
    acts.wait(61)
    acts.kernel.now.expire()
    assert [reason(acts, one)[1] for one in (run, late)] == ["BUILD_FAILED", "BUILD_FAILED"]
    assert acts.claim() == []


def test_a_run_whose_build_failed_while_it_was_paused_fails_when_it_is_resumed(
    acts: Acts, site: Site
) -> None:
    run = site.run()
    acts.pause(run)
    site.build(failure())
    acts.resume(run)
    assert reason(acts, run)[1] == "BUILD_FAILED"


def test_a_failed_build_job_is_not_resumed_by_hand(acts: Acts, site: Site) -> None:
    site.run()
    claim = site.build(failure())
    with pytest.raises(InvalidTransition, match="activating"):
        acts.resume(claim, operator=True)
    with pytest.raises(InvalidTransition, match="installed"):
        acts.resolve(claim)


def test_a_run_that_is_tried_again_needs_no_second_build(acts: Acts, site: Site) -> None:
    site.run()
    site.build()
    (claim,) = acts.claim()
    acts.finish(claim, INTERNAL)
    acts.wait(1)
    acts.kernel.now.expire()
    assert [again.id for again in acts.claim()] == [claim.id]


def test_a_lost_run_needs_no_second_build(acts: Acts, site: Site) -> None:
    site.run()
    site.build()
    (claim,) = acts.claim()
    acts.lose(claim)
    assert [again.id for again in acts.claim()] == [claim.id]


def test_a_run_resumed_before_its_build_has_ended_waits_for_it(acts: Acts, site: Site) -> None:
    run = site.run()
    acts.pause(run)
    acts.resume(run)
    site.build()
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_a_run_resumed_after_its_build_has_ended_starts(acts: Acts, site: Site) -> None:
    run = site.run()
    acts.pause(run)
    site.build()
    acts.resume(run)
    assert [claim.id for claim in acts.claim()] == [run.id]


def test_a_build_takes_no_place_in_the_queue(
    store: Store, clock: ManualClock, database: Database
) -> None:
    acts = Acts(Kernel(store, KernelSettings(queue_size=1)), clock)
    site = Site(acts, database)
    run = site.run()
    with pytest.raises(QueueFull):
        site.run(version("sha256:other"))
    assert [job.kind for job in acts.everything() if job.id != run.id] == [KIND]
    acts.finish(site.claim_build(), made())
    assert [claim.id for claim in acts.claim()] == [run.id]
    site.activate(version("sha256:other"))  # needs no place
    site.run(version("sha256:other"))


# --- active versions ------------------------------------------------------------------------------


def test_a_version_becomes_active_when_its_build_is_ready(acts: Acts, site: Site) -> None:
    accepted = site.activate(version(), by="ada")
    assert accepted.ensured is not None
    version_id = accepted.ensured.version.id
    found = site.activation()
    assert found is not None
    assert (found.version_id, found.pending_version_id, found.pending_by) == (
        None,
        version_id,
        "ada",
    )
    site.build()
    found = site.activation()
    assert found is not None
    assert (found.version_id, found.activated_by) == (version_id, "ada")
    assert (found.activated_at, found.pending_version_id) == (acts.clock.now_us(), None)


def test_a_failed_build_leaves_the_active_version_as_it_is(acts: Acts, site: Site) -> None:
    site.activate(version("sha256:good"))
    site.build()
    before = site.activation()
    site.activate(version("sha256:bad"))
    site.build(failure())
    assert site.activation() == before
    assert before is not None


def test_an_earlier_version_is_activated_again_at_once(acts: Acts, site: Site) -> None:
    first = site.activate(version("sha256:1"))
    site.build()
    site.activate(version("sha256:2"))
    site.build()
    back = site.activate(version("sha256:1"), by="grace")
    assert back.deduplicated
    assert back.job.id == first.job.id
    assert acts.claim() == []
    found = site.activation()
    assert found is not None
    assert first.ensured is not None
    assert (found.version_id, found.activated_by) == (first.ensured.version.id, "grace")


def test_activating_twice_is_one_job(acts: Acts, site: Site) -> None:
    first, second = site.activate(version()), site.activate(version())
    assert (first.job.id, first.deduplicated) == (second.job.id, False)
    assert second.deduplicated


def test_of_two_activations_the_later_one_wins(acts: Acts, site: Site) -> None:
    site.activate(version("sha256:1"))
    second = site.activate(version("sha256:2"))
    site.build()
    site.build()
    found = site.activation()
    assert found is not None
    assert second.ensured is not None
    assert found.version_id == second.ensured.version.id


def test_an_activation_loads_a_package_that_runs_did_not_need_to_build(
    acts: Acts, site: Site
) -> None:
    site.run(has_work=False)
    acts.succeed(acts.claim()[0])
    accepted = site.activate(version(), has_work=False)
    assert (accepted.job.kind, accepted.deduplicated) == (KIND, False)
    site.build(failure())
    assert site.run(has_work=False).status == "failed"


def test_an_activation_makes_a_failed_build_again(acts: Acts, site: Site) -> None:
    site.run()
    site.build(failure())
    site.activate(version())
    site.build()
    assert site.run().eligible == 1


def data(acts: Acts, job: JobRow) -> list[dict[str, Any]]:
    """Read the data of a job's events."""
    return [json.loads(event.data) for event in acts.events(job)]


def test_the_events_of_a_run_say_what_it_waited_for_and_how_that_went(
    acts: Acts, site: Site
) -> None:
    accepted = site.accept()
    claim = site.claim_build()
    steps = [Piece("step", 0, "resolving\n"), Piece("stdout", 10, "uv says\n")]
    last = (Piece("step", 18, "running on_activate\n"),)
    acts.kernel.now.append_output(OutputAppend(held(claim), (batch_of(steps),)))
    acts.wait(2)
    end = Finish(claim, made(), OutputAppend(held(claim), (batch_of(last),)))
    acts.kernel.now.finish(end)
    first, ready = data(acts, accepted.job)
    build_id = accepted.job.build_id
    assert first == {"cause": "accepted", "reason": "build", "build_id": build_id}
    assert ready == {
        "attempt": 0,
        "cause": "build_ready",
        "build": {
            "build_id": build_id,
            "job_id": claim.id,
            "status": "ready",
            "duration_ms": 2000,
            "steps": ["resolving", "running on_activate"],
        },
    }


def test_the_events_of_a_run_name_the_build_that_failed(acts: Acts, site: Site) -> None:
    run = site.run()
    claim = site.build(failure())
    _, failed = data(acts, run)
    assert (failed["cause"], failed["build"]["status"]) == ("unrunnable", "failed")
    assert failed["build"]["job_id"] == claim.id


def test_jobs_that_wait_for_different_things_are_accepted_together(acts: Acts, site: Site) -> None:
    asked = [
        submission(),
        submission(target_id="t"),
        submission(target_id="t"),
        submission(not_before=acts.clock.now_us() + 10**9),
        site.run_submission(version()),
        site.run_submission(version("sha256:v2")),
    ]
    jobs = [accepted.job for accepted in acts.kernel.now.many("submit", asked)]
    reasons = [data(acts, job)[0].get("reason") for job in jobs]
    assert reasons == [None, None, "lane", None, "build", "build"]
    assert data(acts, jobs[3]) == [{"cause": "scheduled"}]
    assert data(acts, jobs[4])[0]["build_id"] != data(acts, jobs[5])[0]["build_id"]
    payloads = acts.kernel.now.read(lambda r: [r.read_payload(ref(job)) for job in jobs[:4]])
    assert payloads == ["{}"] * 4
