"""Jobs that agents run by the worker contract: dispatch, reports, staleness, operators."""

import json
from typing import Any

import pytest
from tests.store.acts import Acts, ref

from ade.domain.agent_pool import AgentPool
from ade.domain.errors import InvalidTransition, NotFinished, NotFound, StaleAttempt
from ade.domain.job import AGENT_POOL, StopRequest
from ade.domain.staleness import StalenessRule
from ade.domain.vocabulary import AgentStatus as Said
from ade.stages.agents.hosts import HostNote
from ade.stages.agents.report import status_of
from ade.stages.force import Force, OperatorAction
from ade.stages.stop import Stop
from ade.store.rows import AgentJobVersion, Claim, JobRow

RULE = StalenessRule()


def word(acts: Acts, job: JobRow | Claim) -> str:
    """Return the status of a job in the words of the contract."""
    return status_of(acts.job(job), facts(acts, job))


def facts(acts: Acts, job: JobRow | Claim) -> dict[str, Any]:
    """Return what is known of a job beside its status."""
    known = acts.kernel.now.read(lambda reading: reading.agent_jobs.find(job.id))
    assert known is not None
    found: dict[str, Any] = json.loads(known.facts)
    return found


def note(acts: Acts, name: str, *active: str, seen_seconds_ago: float = 0) -> None:
    """Note that a host was heard of."""
    beat = HostNote(name, seen_seconds_ago, None, 0, "{}", frozenset(active))
    acts.kernel.now.note_hosts([beat])


def decide(acts: Acts, job: JobRow | Claim, action: OperatorAction, *, force: bool = False) -> str:
    """Act on a job as an operator."""
    request = Force(ref(job), action, "operator", "because", force)
    changed: JobRow = acts.kernel.now.force(request)
    return changed.status


def test_a_dispatched_job_has_not_started(acts: Acts) -> None:
    claim = acts.dispatched()
    job = acts.job(claim)
    assert (job.status, job.started_at, job.lease_owner) == ("running", None, "agent")
    assert word(acts, claim) == "dispatched"
    assert job.lease_expires_at == RULE.claim_expires_at(acts.clock.now_us())


@pytest.mark.parametrize(
    ("end", "status", "shown"),
    [(Said.FINISHED, "succeeded", "finished"), (Said.FAILED, "failed", "failed")],
)
def test_a_job_runs_and_ends(acts: Acts, end: Said, status: str, shown: str) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING, container_id="c1")
    assert (word(acts, claim), acts.job(claim).started_at) == ("running", acts.clock.now_us())
    acts.wait()
    acts.say(claim, end, exit_code=3)
    assert (acts.status(claim), word(acts, claim)) == (status, shown)
    assert facts(acts, claim) == {
        "worker_id": "agent",
        "attempt": 1,
        "container_id": "c1",
        "exit_code": 3,
        "status": shown,
    }


def test_a_failure_says_what_the_agent_said(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    acts.say(claim, Said.FAILED, exit_code=137, error="killed")
    error = json.loads(acts.job(claim).error or "")
    assert (error["category"], error["code"]) == ("USER_CODE_ERROR", "CONTAINER_FAILED")
    assert error["message"] == "The container ended with exit code 137. killed"


def test_a_failure_without_a_reason_is_blamed_on_the_agent(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    acts.say(claim, Said.FAILED)
    error = json.loads(acts.job(claim).error or "")
    assert (error["category"], error["code"]) == ("INTERNAL_ERROR", "AGENT_FAILED")


def test_an_agent_can_say_that_the_time_was_over(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    acts.say(claim, Said.FAILED, details={"code": "TIMED_OUT"})
    assert (acts.status(claim), word(acts, claim)) == ("timed_out", "failed")


def test_a_result_is_not_lost_with_the_report_that_the_job_runs(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.FINISHED, exit_code=0)
    assert acts.status(claim) == "succeeded"
    assert acts.log(claim) == ["queued", "dispatched", "running", "succeeded"]


def test_a_report_may_be_repeated(acts: Acts) -> None:
    claim = acts.dispatched()
    for status in (Said.RUNNING, Said.RUNNING, Said.FINISHED, Said.FINISHED):
        acts.say(claim, status)
    assert acts.log(claim) == ["queued", "dispatched", "running", "succeeded"]


@pytest.mark.parametrize("status", [Said.UNKNOWN, Said.NOT_FOUND, Said.LAUNCHING, Said.STOPPED])
def test_what_may_not_follow_is_refused(acts: Acts, status: Said) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    with pytest.raises(InvalidTransition):
        acts.say(claim, status)
    assert word(acts, claim) == "running"


def test_only_the_holder_may_report(acts: Acts) -> None:
    claim = acts.dispatched()
    with pytest.raises(InvalidTransition, match="another worker"):
        acts.say(claim, Said.RUNNING, "other")
    acts.say(claim, Said.FINISHED)
    with pytest.raises(InvalidTransition, match="another worker"):
        acts.say(claim, Said.FINISHED, "other")


def test_a_job_that_nobody_holds_takes_no_report(acts: Acts) -> None:
    job = acts.submit(pool=AGENT_POOL)
    with pytest.raises(InvalidTransition):
        acts.say(job, Said.RUNNING)


def test_an_earlier_attempt_is_refused_if_it_is_named(acts: Acts) -> None:
    first = acts.dispatched()
    acts.say(first, Said.QUEUED)
    second = acts.dispatch()
    assert second is not None
    with pytest.raises(StaleAttempt):
        acts.say(first, Said.RUNNING, attempt=1)
    acts.say(second, Said.RUNNING, attempt=2)


def test_a_dispatched_job_can_be_handed_back(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.QUEUED)
    assert (acts.status(claim), acts.log(claim)) == ("queued", ["queued", "dispatched", "released"])


@pytest.mark.parametrize("begins", [True, False])
def test_a_stopped_job(acts: Acts, begins: bool) -> None:
    claim = acts.dispatched()
    if begins:
        acts.say(claim, Said.RUNNING)
    acts.cancel(claim)
    assert word(acts, claim) == "stop_requested"
    acts.say(claim, Said.RUNNING)  # it runs until it has stopped
    acts.say(claim, Said.STOP_REQUESTED)
    acts.say(claim, Said.STOPPED)
    assert (acts.status(claim), word(acts, claim)) == ("cancelled", "stopped")


def test_a_job_that_completes_although_a_stop_was_requested_has_completed(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    acts.cancel(claim)
    acts.say(claim, Said.FINISHED)
    assert word(acts, claim) == "finished"


def test_a_job_that_is_cancelled_before_it_starts_is_canceled(acts: Acts) -> None:
    job = acts.submit(pool=AGENT_POOL)
    acts.cancel(job)
    assert word(acts, job) == "canceled"


def test_a_claim_without_a_status_is_taken_back(acts: Acts) -> None:
    claim = acts.dispatched()
    note(acts, "agent")
    acts.wait(RULE.settling_seconds)
    note(acts, "agent")
    acts.wait(0.001)
    assert acts.kernel.now.expire().lost == 1
    assert (acts.status(claim), acts.log(claim)[-1]) == ("queued", "lost")
    with pytest.raises(InvalidTransition):
        acts.say(claim, Said.RUNNING)


def test_a_running_job_whose_status_is_stale_fails(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    acts.wait(RULE.status_ttl_seconds)
    note(acts, "agent")
    assert acts.kernel.now.expire().lost == 0
    acts.wait(0.001)
    assert acts.kernel.now.expire().lost == 1
    error = json.loads(acts.job(claim).error or "")
    assert (acts.status(claim), error["code"]) == ("failed", "AGENT_LOST")
    with pytest.raises(InvalidTransition):
        acts.say(claim, Said.FINISHED)


def test_a_job_whose_agent_is_silent_fails_although_its_status_is_fresh(acts: Acts) -> None:
    claim = acts.dispatched()
    note(acts, "agent")
    acts.say(claim, Said.RUNNING)
    acts.wait(RULE.settling_seconds)
    assert acts.kernel.now.expire().lost == 0
    acts.wait(0.001)
    assert acts.kernel.now.expire().lost == 1
    assert acts.status(claim) == "failed"


def test_a_stale_job_whose_stop_was_requested_fails(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.cancel(claim)
    acts.lose(claim)
    assert word(acts, claim) == "failed"


def test_a_heartbeat_that_lists_a_job_keeps_it(acts: Acts) -> None:
    claim, other = acts.dispatched(), acts.dispatched("other")
    for _ in range(3):
        acts.wait(RULE.claim_ttl_seconds - 1)
        note(acts, "agent", claim.id, other.id)
        note(acts, "other")
    assert acts.kernel.now.expire().lost == 1
    assert (word(acts, claim), word(acts, other)) == ("dispatched", "queued")


def test_a_server_that_has_just_started_gives_up_nothing(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.clock.steady_since = acts.clock.monotonic()
    acts.wait(RULE.settling_seconds - 1)
    assert acts.kernel.now.expire().lost == 0
    assert word(acts, claim) == "dispatched"


def test_an_agent_gets_jobs_of_the_pools_that_it_serves(acts: Acts) -> None:
    own, labelled = AgentPool("a", True), AgentPool(None, False, ("gpu",))
    anyone = acts.submit(pool=AGENT_POOL)
    for pool in (own, labelled):
        acts.submit(pool=AGENT_POOL, agent_pool=pool, job_name=pool.name)
    waiting = acts.kernel.now.read(lambda reading: reading.agent_jobs.waiting_pools())
    assert set(waiting) == {AgentPool(), own, labelled}
    first = acts.dispatch("a", own, AgentPool())
    second = acts.dispatch("a", own, AgentPool())
    assert first is not None
    assert second is not None
    assert (acts.job(first).pool, second.id) == (own.name, anyone.id)
    assert acts.dispatch("a", own, AgentPool()) is None


@pytest.mark.parametrize("action", list(OperatorAction))
def test_an_operator_decides_about_a_waiting_job(acts: Acts, action: OperatorAction) -> None:
    job = acts.submit(pool=AGENT_POOL)
    ends = {"requeue": "queued", "fail": "failed", "cancel": "cancelled"}
    assert decide(acts, job, action) == ends[action]
    assert decide(acts, job, action) == ends[action]


@pytest.mark.parametrize("action", [OperatorAction.REQUEUE, OperatorAction.CANCEL])
def test_a_running_job_is_changed_only_by_force(acts: Acts, action: OperatorAction) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.RUNNING)
    with pytest.raises(InvalidTransition, match="force=true"):
        decide(acts, claim, action)
    decide(acts, claim, action, force=True)
    data = acts.last_event_data(claim)
    assert (data["by"], data["reason"], data["forced"]) == ("operator", "because", True)
    with pytest.raises(InvalidTransition):
        acts.say(claim, Said.FINISHED)


def test_a_job_that_an_operator_failed_says_so(acts: Acts) -> None:
    claim = acts.dispatched()
    decide(acts, claim, OperatorAction.FAIL)
    error = json.loads(acts.job(claim).error or "")
    assert (error["category"], error["code"]) == ("INTERNAL_ERROR", "FAILED_BY_OPERATOR")
    assert error["message"] == "An operator marked the job as failed: because"


def test_a_requeued_job_runs_again(acts: Acts) -> None:
    claim = acts.dispatched()
    acts.say(claim, Said.FAILED, exit_code=1)
    assert decide(acts, claim, OperatorAction.REQUEUE) == "queued"
    again = acts.dispatch("other")
    assert again is not None
    assert (again.id, again.fence) == (claim.id, 2)


def test_a_job_is_deleted_when_it_has_ended(acts: Acts) -> None:
    claim = acts.dispatched()
    with pytest.raises(NotFinished):
        acts.kernel.now.delete(ref(claim))
    acts.say(claim, Said.FINISHED)
    acts.kernel.now.delete(ref(claim))
    assert acts.kernel.now.read(lambda reading: reading.agent_jobs.find(claim.id)) is None
    with pytest.raises(NotFound):
        acts.kernel.now.delete(ref(claim))


def test_jobs_are_listed(acts: Acts) -> None:
    first = acts.submit(pool=AGENT_POOL, job_name="first")
    second = acts.submit(pool=AGENT_POOL, job_name="second")
    acts.dispatch()

    def look(reading: Any) -> list[list[str]]:
        jobs = reading.agent_jobs
        page = jobs.page(first.workspace_id, None, 9)
        rest = jobs.page(first.workspace_id, second.id, 9)
        waiting = jobs.waiting(first.workspace_id, 9)
        return [[one.known.job_name for one in some] for some in (page, rest, waiting)]

    assert acts.kernel.now.read(look) == [["second", "first"], ["first"], ["second"]]
    (held,) = acts.kernel.now.read(lambda reading: reading.agent_jobs.held())
    assert (held.id, held.lease_owner, held.fence) == (first.id, "agent", 1)


def test_a_host_is_remembered_as_it_was_last_heard_of(acts: Acts) -> None:
    note(acts, "a", seen_seconds_ago=5)
    note(acts, "b")
    note(acts, "a", seen_seconds_ago=7)  # an older note that comes late changes nothing
    now = acts.clock.now_us()
    hosts = acts.kernel.now.read(lambda reading: reading.agent_jobs.hosts())
    assert [(host.name, now - host.seen_at) for host in hosts] == [("a", 5_000_000), ("b", 0)]


def test_every_change_of_the_status_has_a_time(acts: Acts) -> None:
    def changed_at(job: Claim) -> int:
        known = acts.kernel.now.read(lambda reading: reading.agent_jobs.find(job.id))
        assert known is not None
        return known.reported_at

    stopped, queued = acts.dispatched(), acts.dispatched()
    before = facts(acts, stopped), facts(acts, queued)
    acts.wait()
    acts.kernel.now.stop(Stop(ref(stopped), StopRequest.CANCEL, "someone"))
    decide(acts, acts.job(queued), OperatorAction.REQUEUE)
    assert changed_at(stopped) == changed_at(queued) == acts.clock.now_us()
    assert (facts(acts, stopped), facts(acts, queued)) == before


def test_the_versions_of_jobs_tell_their_states_apart(acts: Acts) -> None:
    first, second = acts.dispatched(), acts.dispatched()

    def versions(before: str | None = None, limit: int = 10) -> list[AgentJobVersion]:
        return acts.kernel.now.read(lambda r: r.agent_jobs.versions(before, limit))

    seen = versions()
    assert [version.job_id for version in seen] == sorted((first.id, second.id), reverse=True)
    assert versions(limit=1) == seen[:1]
    assert versions(before=seen[0].job_id) == seen[1:]
    acts.wait()
    acts.say(first, Said.RUNNING)
    acts.wait()
    acts.say(first, Said.RUNNING)
    running = versions()
    assert len({*seen, *running}) == 3
    acts.say(first, Said.FINISHED)
    assert {version.job_id: version.finished_at is None for version in versions()} == {
        first.id: False,
        second.id: True,
    }


def test_what_a_host_says_of_itself_is_its_latest_heartbeat(acts: Acts) -> None:
    def note(info: str, beat: float | None, seen: float = 0) -> None:
        acts.kernel.now.note_hosts([HostNote("a", seen, 0.0, beat, info)])

    def known() -> tuple[str, int, int]:
        (host,) = acts.kernel.now.read(lambda reading: reading.agent_jobs.hosts())
        now = acts.clock.now_us()
        return host.info, now - host.seen_at, now - (host.beat_at or 0)

    note('{"load": 1}', 10)
    assert known() == ('{"load": 1}', 0, 10_000_000)
    note("{}", None)  # it asked another server for work, which heard no heartbeat
    assert known() == ('{"load": 1}', 0, 10_000_000)
    note('{"load": 2}', 3)
    note('{"load": 0}', 20, seen=20)  # an older one, from a server that was slow
    assert known() == ('{"load": 2}', 0, 3_000_000)


def test_many_hosts_are_noted_at_once(acts: Acts) -> None:
    notes = [HostNote(f"h{number}", number, None, number) for number in range(30)]
    acts.kernel.now.note_hosts([*notes, HostNote("h3", 1, None, 1, '{"load": 1}')])
    acts.kernel.now.note_hosts(notes)
    hosts = acts.kernel.now.read(lambda reading: reading.agent_jobs.hosts())
    assert len(hosts) == 30
    (third,) = [host for host in hosts if host.name == "h3"]
    assert (acts.clock.now_us() - third.seen_at, third.info) == (1_000_000, '{"load": 1}')
