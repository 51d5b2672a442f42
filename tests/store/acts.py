"""What APIs and workers do to a kernel, in one line each, and what must be true afterwards."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.databases import WORKSPACE

from ade.clock import ManualClock
from ade.domain.agent_pool import AgentPool, is_agent_pool
from ade.domain.events import EventType
from ade.domain.job import AGENT_POOL, LOCAL_POOL, TERMINAL, Cause, Status, StopRequest, is_allowed
from ade.domain.limits import Limits
from ade.domain.outcome import Category, JobError, Outcome
from ade.domain.output import Piece, PieceBatch, batch_of
from ade.domain.vocabulary import AgentStatus
from ade.kernel import Kernel
from ade.stages.agents.dispatch import Dispatch
from ade.stages.agents.report import AgentReport
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish, Finished
from ade.stages.output import OutputAppend
from ade.stages.report import AttemptReport
from ade.stages.resume import Clear, Resolve, Resume
from ade.stages.stop import Stop
from ade.stages.submit.model import Accepted, Submission
from ade.store.port import Reading
from ade.store.rows import Claim, JobRef, JobRow, LeaseRef, NewEvent, OutputBatch, Renewed

LIMITS = Limits(timeout_ms=60_000, cpu_ms=60_000, memory_mb=512, max_output_kb=256, max_artifacts=9)
ALL = 100_000

# Which status each event of a change leaves a job in; the others leave it where it is.
LEAVES_IN = {
    EventType.SCHEDULED: Status.PENDING,
    EventType.QUEUED: Status.QUEUED,
    EventType.DISPATCHED: Status.RUNNING,
    EventType.STARTED: Status.RUNNING,
    EventType.PAUSED: Status.PAUSED,
    EventType.SUCCEEDED: Status.SUCCEEDED,
    EventType.FAILED: Status.FAILED,
    EventType.TIMED_OUT: Status.TIMED_OUT,
    EventType.CANCELLED: Status.CANCELLED,
    EventType.LOST: Status.QUEUED,
    EventType.RETRIED: Status.QUEUED,
    EventType.RELEASED: Status.QUEUED,
    EventType.RESUMED: Status.QUEUED,
    EventType.RESOLVED: Status.SUCCEEDED,
}


def submission(**changes: Any) -> Submission:
    """Ask for a small job; name what is different about it."""
    asked: dict[str, Any] = {
        "workspace_id": WORKSPACE,
        "kind": "echo",
        "payload": "{}",
        "limits": LIMITS,
        "submitted_by": "someone",
    }
    return Submission(**asked | changes)


def failure(category: Category = Category.USER_CODE_ERROR) -> Outcome:
    """Make a failed outcome."""
    return Outcome(Status.FAILED, error=JobError(category, "BROKEN", "It broke."))


def success(**result: Any) -> Outcome:
    """Make a successful outcome."""
    return Outcome(Status.SUCCEEDED, result=result)


INTERNAL = failure(Category.INTERNAL_ERROR)


class Acts:
    """Act on a kernel; times pass only by `wait`."""

    def __init__(self, kernel: Kernel, clock: ManualClock) -> None:
        self.kernel = kernel
        self.clock = clock

    def wait(self, seconds: float = 0.001) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    def accept(self, **changes: Any) -> Accepted:
        """Submit a job, a moment after whatever was before."""
        self.wait()
        accepted: Accepted = self.kernel.now.submit(submission(**changes))
        return accepted

    def submit(self, **changes: Any) -> JobRow:
        """Submit a job and return it."""
        return self.accept(**changes).job

    def claim(self, limit: int = 1, owner: str = "worker", pool: str = LOCAL_POOL) -> list[Claim]:
        """Claim jobs, without a memory of earlier claims."""
        claimed: list[Claim] = self.kernel.now.claim(ClaimRequest(owner, limit, pool))
        return claimed

    def dispatch(self, agent: str = "agent", *pools: AgentPool) -> Claim | None:
        """Give an agent a job by the worker contract."""
        found: Claim | None = self.kernel.now.dispatch(Dispatch(agent, pools or (AgentPool(),)))
        return found

    def dispatched(self, agent: str = "agent", **changes: Any) -> Claim:
        """Submit a job for agents and give it to one."""
        job = self.submit(pool=AGENT_POOL, retries=0, **changes)
        claim = self.dispatch(agent)
        assert claim is not None
        assert claim.id == job.id
        return claim

    def say(
        self,
        job: JobRow | Claim,
        status: AgentStatus,
        agent: str = "agent",
        attempt: int | None = None,
        **facts: Any,
    ) -> JobRow:
        """Report on a job as its agent."""
        report = AgentReport(ref(job), agent, status, facts, attempt)
        changed: JobRow = self.kernel.now.report_status(report)
        return changed

    def start(self, **changes: Any) -> Claim:
        """Submit a job and claim it."""
        job = self.submit(**changes)
        (claimed,) = self.claim()
        assert claimed.id == job.id
        return claimed

    def finish(self, claim: Claim, outcome: Outcome | None) -> Finished:
        """Record how an attempt ended."""
        recorded: Finished = self.kernel.now.finish(Finish(claim, outcome))
        return recorded

    def succeed(self, claim: Claim, **result: Any) -> Finished:
        """Record a success."""
        return self.finish(claim, success(**result))

    def release(self, claim: Claim) -> Finished:
        """Hand a job back."""
        return self.finish(claim, None)

    def renew(self, *claims: Claim) -> Sequence[Renewed | Exception]:
        """Renew leases."""
        return self.kernel.now.many("renew", [held(claim) for claim in claims])

    def report(self, claim: Claim, *lines: str, progress: dict[str, Any] | None = None) -> bool:
        """Write to the log of a job."""
        said = tuple((EventType.LOG, {"line": line}) for line in lines)
        kept: bool = self.kernel.now.report(AttemptReport(held(claim), said, progress))
        return kept

    def write(self, claim: Claim, *texts: str, starts: int = 0) -> None:
        """Append output to the log of a job, as one batch for each text."""
        self.kernel.now.append_output(OutputAppend(held(claim), batches(*texts, starts=starts)))

    def output(self, job: JobRow | Claim) -> list[OutputBatch]:
        """Read what a job wrote."""
        return self.kernel.now.read(lambda reading: reading.read_output(ref(job), 0, ALL))

    def cancel(self, job: JobRow | Claim) -> JobRow:
        """Ask that a job be cancelled."""
        stopped: JobRow = self.kernel.now.stop(Stop(ref(job), StopRequest.CANCEL, "someone"))
        return stopped

    def pause(self, job: JobRow | Claim) -> JobRow:
        """Ask that a job be paused."""
        stopped: JobRow = self.kernel.now.stop(Stop(ref(job), StopRequest.PAUSE, "someone"))
        return stopped

    def resume(self, job: JobRow | Claim, *, operator: bool = False) -> JobRow:
        """Ask that a job wait again."""
        resumed: JobRow = self.kernel.now.resume(Resume(ref(job), "someone", operator))
        return resumed

    def resolve(self, job: JobRow | Claim, **result: Any) -> JobRow:
        """Give a job the result that a person found."""
        resolved: JobRow = self.kernel.now.resolve(Resolve(ref(job), "someone", result, "by hand"))
        return resolved

    def clear(self, job: JobRow | Claim) -> JobRow:
        """Take its lane from a job."""
        cleared: JobRow = self.kernel.now.clear(Clear(ref(job), "someone", "never mind"))
        return cleared

    def lose(self, claim: Claim) -> None:
        """Let the lease on a job run out, and sweep."""
        rules = self.kernel.settings
        by_contract = is_agent_pool(self.job(claim).pool)
        ttl = rules.staleness.settling_seconds if by_contract else rules.lease.lease_seconds
        self.wait(ttl + 1)
        assert self.kernel.now.expire().lost >= 1

    def job(self, job: JobRow | Claim) -> JobRow:
        """Read a job."""
        found = self.kernel.now.read(lambda reading: reading.read_job(ref(job)))
        assert found is not None
        return found

    def status(self, job: JobRow | Claim) -> str:
        """Read where a job is."""
        return self.job(job).status

    def result(self, job: JobRow | Claim) -> Any:
        """Read the result of a job."""
        body = self.kernel.now.read(lambda reading: reading.read_result(ref(job)))
        return None if body is None else json.loads(body)

    def events(self, job: JobRow | Claim) -> list[NewEvent]:
        """Read the log of a job."""
        return self.kernel.now.read(lambda reading: reading.read_events(ref(job), 0, ALL))

    def log(self, job: JobRow | Claim) -> list[str]:
        """Read the log of a job, only the words."""
        return [event.type.removeprefix("job.") for event in self.events(job)]

    def last_event_data(self, job: JobRow | Claim) -> dict[str, Any]:
        """Read the data of the last event of a job."""
        data: dict[str, Any] = json.loads(self.events(job)[-1].data)
        return data

    def everything(self) -> list[JobRow]:
        """Read all jobs."""
        return self.kernel.now.read(
            lambda reading: [
                job
                for workspace_id in reading.workspace_ids()
                for job in reading.list_jobs(workspace_id, {}, None, ALL)
            ]
        )

    def check(self) -> "Seen":
        """Check what must be true of all jobs at any time, and return them as they were seen."""
        seen = self.kernel.now.read(_look_at_everything)
        for job in seen.jobs.values():
            _check_log(job, seen.logs[job.id])
            if job.status not in (*TERMINAL, Status.PAUSED):
                assert seen.results[job.id] is None
            if job.eligible:
                assert job.not_before is None, "it may be claimed although it waits for a time"
        lanes: dict[tuple[str, str], list[JobRow]] = {}
        for job in seen.jobs.values():
            if job.target_id is not None:
                lanes.setdefault((job.workspace_id, job.target_id), []).append(job)
        for lane in lanes.values():
            _check_lane(lane)
        self.kernel.now.read(_check_counts)
        return seen


@dataclass(frozen=True)
class Seen:
    """Hold all jobs with their logs and results, in one snapshot."""

    jobs: dict[str, JobRow]
    logs: dict[str, list[NewEvent]]
    results: dict[str, Any]


def _look_at_everything(reading: Reading) -> Seen:
    jobs = {
        job.id: job
        for workspace_id in reading.workspace_ids()
        for job in reading.list_jobs(workspace_id, {}, None, ALL)
    }
    logs = {id_: reading.read_events(ref(job), 0, ALL) for id_, job in jobs.items()}
    bodies = {id_: reading.read_result(ref(job)) for id_, job in jobs.items()}
    return Seen(jobs, logs, {id_: json.loads(body or "null") for id_, body in bodies.items()})


def _check_counts(reading: Reading) -> None:
    """The counters are what there is, by each of their filters."""
    live: Counter[tuple[str, str]] = Counter()
    for workspace_id in reading.workspace_ids():
        jobs = reading.list_jobs(workspace_id, {}, None, ALL)
        live += Counter((job.pool, job.status) for job in jobs if job.status not in TERMINAL)
        for filters in (
            {},
            *({"kind": kind} for kind in {job.kind for job in jobs}),
            *({"priority": priority} for priority in {job.priority for job in jobs}),
        ):
            wanted = filters.items()
            right = Counter(
                job.status
                for job in jobs
                if all(getattr(job, name) == value for name, value in wanted)
            )
            assert reading.count_jobs(workspace_id, filters) == right, filters
    assert reading.count_by_status() == live


def _check_log(job: JobRow, events: list[NewEvent]) -> None:
    """A log has no gap, never runs backwards, follows the transition table, has every attempt."""
    assert [event.seq for event in events] == list(range(1, job.event_seq + 1)), job
    if job.pool == LOCAL_POOL:  # when an agent's job was dispatched is in no column
        times = [event.at for event in events]
        assert times == sorted(times), "the log runs backwards"
        assert job.submitted_at <= (job.started_at or times[-1]) <= (job.finished_at or times[-1])
    changes = [
        (LEAVES_IN[EventType(e.type)], Cause(json.loads(e.data)["cause"]))
        for e in events
        if e.type in LEAVES_IN
    ]
    before: Status | None = None
    for after, cause in changes:
        assert is_allowed(before, after, cause), (before, after, cause, changes)
        before = after
    assert before == job.status, (changes, job)
    decisive = [e for e in events if _is_change_or_stop_request(e)]
    requested = [e.type == EventType.STOP_REQUESTED for e in decisive]
    stays = [LEAVES_IN.get(EventType(e.type)) != Status.QUEUED for e in decisive]
    followed = zip(requested, stays[1:], strict=False)
    assert all(is_kept for was_requested, is_kept in followed if was_requested), "lost stop request"
    attempts = [e for e in events if e.type in (EventType.STARTED, EventType.DISPATCHED)]
    assert [json.loads(e.data)["attempt"] for e in attempts] == list(range(1, job.fence + 1))


def _is_change_or_stop_request(event: NewEvent) -> bool:
    """Distinguish changes of status and stop requests from what workers report."""
    return event.type in LEAVES_IN or event.type == EventType.STOP_REQUESTED


def _check_lane(lane: list[JobRow]) -> None:
    """At most one job of a lane runs or is about to; on a free one jobs wait only for a time."""
    assert sum(job.status == Status.RUNNING or bool(job.eligible) for job in lane) <= 1, lane
    if not any(job.holds_lane for job in lane):
        waiting = [job for job in lane if job.status == Status.QUEUED and job.not_before is None]
        assert not waiting, lane


def ref(job: JobRow | Claim) -> JobRef:
    """Name a job."""
    return JobRef(job.workspace_id, job.id)


def batches(*texts: str, starts: int = 0) -> tuple[PieceBatch, ...]:
    """Make batches of one piece, each after the other."""
    made: list[PieceBatch] = []
    for text in texts:
        made.append(batch_of([Piece("stdout", starts, text)]))
        starts = made[-1].ends
    return tuple(made)


def held(claim: Claim) -> LeaseRef:
    """Name an attempt."""
    return LeaseRef(claim.workspace_id, claim.id, claim.fence)
