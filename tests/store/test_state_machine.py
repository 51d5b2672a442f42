"""Any life that workers, people and time can give to jobs keeps ADE's promise.

Hypothesis makes up the lives: it submits, claims, renews, reports, finishes, stops, resumes, lets
time pass and loses replies (the verb commits, but the caller hears nothing and asks again), in any
order and with leases long lost. After every step this must hold, on every store:

- once a job is terminal, only a person opens it again;
- a result is recorded only by the holder of the fence, once, and it is the one that is stored;
- no two jobs of a target are live;
- every log has no gap, and tells a way through the table of transitions that ends at the status;
- `ade db check` finds nothing wrong;
- nothing that was accepted is lost: in the end every job is terminal, or paused by a person.
"""

import os
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)
from tests.databases import Database, SqlDatabase
from tests.store.acts import Acts, Seen, failure, ref, submission, success

from ade.app.database_check import check_database
from ade.clock import ManualClock
from ade.domain.errors import AdeError, LeaseLost
from ade.domain.job import AGENT_POOL, LOCAL_POOL, TERMINAL, Priority, Status, StopRequest
from ade.domain.outcome import Category, Outcome
from ade.kernel import Kernel
from ade.stages.claim import ClaimRequest
from ade.stages.finish import Finish
from ade.stages.kernel_settings import KernelSettings
from ade.stages.resume import Clear, Resolve, Resume
from ade.stages.stop import Stop
from ade.stages.submit.model import Idempotency
from ade.store.port import Store
from ade.store.rows import Claim, JobRef
from ade.store.session import Session

FAST = os.environ.get("ADE_TEST_TIER") == "fast"
EXAMPLES = {"memory": 300, "sqlite": 100, "postgresql": 60, "mssql": 30}
STEPS = 50
LEASE_SECONDS = 15
ALL_KINDS = frozenset({"echo", "new"})
REOPENABLE = {Status.FAILED, Status.TIMED_OUT}

OUTCOMES = {
    "success": lambda fence: success(fence=fence),
    "failure": lambda fence: failure(),
    "partial failure": lambda fence: Outcome(Status.FAILED, result={"fence": fence}),
    "internal error": lambda fence: failure(Category.INTERNAL_ERROR),
    "timeout": lambda fence: Outcome(Status.TIMED_OUT),
    "cancelled": lambda fence: Outcome(Status.CANCELLED),
    "paused": lambda fence: Outcome(Status.PAUSED),
    "released": lambda fence: None,
}


class Life(RuleBasedStateMachine):
    """Lead jobs through lives, beside a model of what must come of them."""

    fresh_store: Callable[[], Store]
    clock: ManualClock

    jobs: Bundle[JobRef] = Bundle("jobs")
    claims: Bundle[Claim] = Bundle("claims")

    @initialize()
    def begin(self) -> None:
        self.kernel = Kernel(self.fresh_store(), KernelSettings(queue_size=0))
        self.acts = Acts(self.kernel, self.clock)
        self.accepted: set[str] = set()
        self.stored: dict[str, Any] = {}
        self.ended: set[tuple[str, int]] = set()
        self.fences: dict[str, int] = {}
        self.before = Seen({}, {}, {})
        self.reopened: str | None = None
        self.requests = 0
        self.set_back_seconds = 0.0

    # --- what clients do

    @rule(
        target=jobs,
        lane=st.sampled_from(["a", "a", "b", None]),
        key=st.sampled_from([None, None, "sha256:1", "sha256:2"]),
        priority=st.sampled_from(Priority),
        pool=st.sampled_from([LOCAL_POOL, LOCAL_POOL, LOCAL_POOL, AGENT_POOL]),
        delay_seconds=st.sampled_from([0, 0, 0, 5]),
        retries=st.integers(0, 2),
        kind=st.sampled_from(["echo", "echo", "new"]),
        reply_is_lost=st.booleans(),
    )
    def submit(
        self,
        lane: str | None,
        key: str | None,
        priority: Priority,
        pool: str,
        delay_seconds: int,
        retries: int,
        kind: str,
        reply_is_lost: bool,
    ) -> JobRef:
        self.acts.wait()
        self.requests += 1
        ask = submission(
            kind=kind,
            target_id=lane,
            execution_key=key,
            priority=priority,
            pool=pool,
            not_before=self.clock.now_us() + delay_seconds * 1_000_000 if delay_seconds else None,
            retries=retries,
            idempotency=Idempotency("me", "POST", str(self.requests), "b", lambda a: (202, "{}")),
        )
        accepted = self.kernel.now.submit(ask)
        if reply_is_lost:
            again = self.kernel.now.submit(ask)
            assert again.replayed == (202, "{}")
            assert again.job.id == accepted.job.id
        self.accepted.add(accepted.job.id)
        return JobRef(accepted.job.workspace_id, accepted.job.id)

    # --- what workers do

    @rule(
        target=claims,
        limit=st.integers(1, 3),
        pool=st.sampled_from([LOCAL_POOL, LOCAL_POOL, AGENT_POOL]),
        kinds=st.sampled_from([None, ALL_KINDS, frozenset({"echo"})]),
        reply_is_lost=st.booleans(),
    )
    def claim(
        self, limit: int, pool: str, kinds: frozenset[str] | None, reply_is_lost: bool
    ) -> Any:
        claimed = self.kernel.now.claim(ClaimRequest("worker", limit, pool, kinds=kinds))
        for claim in claimed:
            assert kinds is None or claim.kind in kinds
            assert self.before.jobs[claim.id].status == Status.QUEUED
            assert claim.fence == self.fences.get(claim.id, 0) + 1
            self.fences[claim.id] = claim.fence
        return multiple() if reply_is_lost else multiple(*claimed)

    @rule(claim=claims, lines=st.integers(0, 2), reply_is_lost=st.booleans())
    def report_and_renew(self, claim: Claim, lines: int, reply_is_lost: bool) -> None:
        for _ in range(1 + reply_is_lost):
            try:
                self.acts.report(claim, *["line"] * lines, progress={"done": lines})
                assert self._holds(claim)
            except LeaseLost:
                assert not self._holds(claim)
            (answer,) = self.acts.renew(claim)
            assert isinstance(answer, LeaseLost) != self._holds(claim)

    @rule(claim=claims, how=st.sampled_from(sorted(OUTCOMES)), reply_is_lost=st.booleans())
    def finish(self, claim: Claim, how: str, reply_is_lost: bool) -> None:
        ended = Finish(claim, OUTCOMES[how](claim.fence))
        held = self._holds(claim)
        (answer,) = self.kernel.now.many("finish", [ended])
        assert isinstance(answer, LeaseLost) != held
        if held:
            assert (claim.id, claim.fence) not in self.ended
            self.ended.add((claim.id, claim.fence))
            if ended.outcome is not None and answer.status is ended.outcome.status:
                self.stored[claim.id] = ended.outcome.result
        if reply_is_lost:
            (again,) = self.kernel.now.many("finish", [ended])
            assert isinstance(again, LeaseLost)

    def _holds(self, claim: Claim) -> bool:
        """Tell by the last look whether a claim is still the one of its job."""
        job = self.before.jobs[claim.id]
        return job.status == Status.RUNNING and job.fence == claim.fence

    # --- what people do

    @rule(job=jobs, request=st.sampled_from(StopRequest), reply_is_lost=st.booleans())
    def stop(self, job: JobRef, request: StopRequest, reply_is_lost: bool) -> None:
        for _ in range(1 + reply_is_lost):
            (answer,) = self.kernel.now.many("stop", [Stop(job, request, "someone")])
        before = self.before.jobs[job.id]
        if before.status in TERMINAL - {Status.CANCELLED}:
            assert isinstance(answer, AdeError)
        elif request is StopRequest.CANCEL:
            assert answer.status == Status.CANCELLED or answer.stop_request == StopRequest.CANCEL

    @rule(job=jobs, what=st.sampled_from(["resume", "resume", "resolve", "clear"]))
    def decide(self, job: JobRef, what: str) -> None:
        asks: dict[str, Any] = {
            "resume": Resume(job, "someone", operator=True),
            "resolve": Resolve(job, "someone", {"by": "hand"}),
            "clear": Clear(job, "someone"),
        }
        (answer,) = self.kernel.now.many(what, [asks[what]])
        if what != "clear" and not isinstance(answer, AdeError):
            assert self.before.jobs[job.id].status in REOPENABLE | {Status.PAUSED}
            self.reopened = job.id
            self.stored.pop(job.id, None)
            if what == "resolve":
                by_hand = {"by": "someone", "at_us": self.acts.clock.now_us()}
                self.stored[job.id] = {"by": "hand", "resolved": by_hand}

    # --- what time does

    @rule(seconds=st.sampled_from([0, 1, 5, LEASE_SECONDS + 1, 100]), sweeps=st.integers(0, 2))
    def time_passes(self, seconds: int, sweeps: int) -> None:
        self.acts.wait(seconds)
        self.kernel.now.many("expire", [None] * sweeps)

    @rule(seconds=st.sampled_from([0.001, 20, 3600]))
    def clock_is_set_back(self, seconds: float) -> None:
        """The database's own clock, or that of a process which asked long ago."""
        self.acts.wait(-seconds)
        self.set_back_seconds += seconds

    # --- what must hold

    @invariant()
    def promise(self) -> None:
        seen = self.acts.check()
        assert set(seen.jobs) == self.accepted
        for id_, before in self.before.jobs.items():
            now = seen.jobs[id_]
            if before.status in TERMINAL and now.status != before.status:
                assert id_ == self.reopened
                assert before.status in REOPENABLE
            assert now.fence >= before.fence
        for id_, result in seen.results.items():
            assert result == self.stored.get(id_), seen.jobs[id_]
        self.before, self.reopened = seen, None

    def teardown(self) -> None:
        """Drain: workers finish everything, a person clears what holds lanes up."""
        if not hasattr(self, "kernel"):
            return
        if isinstance(self.kernel.store, Session):
            assert list(check_database(self.kernel.store)) == []
        # A lease that was granted before the clock was set back ends so much later.
        self.acts.wait(self.set_back_seconds)
        for _ in range(3 * len(self.accepted) + 3):
            self.acts.wait(100)
            self.kernel.now.expire()
            for pool in (LOCAL_POOL, AGENT_POOL):
                for claim in self.kernel.now.claim(
                    ClaimRequest("last", 100, pool, kinds=ALL_KINDS)
                ):
                    self.acts.succeed(claim)
            for job in self.acts.everything():
                if job.holds_lane:
                    self.kernel.now.many("clear", [Clear(ref(job), "someone")])
        left = {job.id: job.status for job in self.acts.check().jobs.values()}
        assert set(left) == self.accepted
        assert set(left.values()) <= {*TERMINAL, Status.PAUSED}


def test_any_life_keeps_the_promise(database: Database, clock: ManualClock) -> None:
    store = database.open(clock)

    def fresh_store() -> Store:
        """Empty the store: what differs between lives is only what is in it."""
        if isinstance(database, SqlDatabase):
            database.wipe()
            return store
        database.close()
        return database.open(clock)

    given = {"fresh_store": staticmethod(fresh_store), "clock": clock}
    machine = type("LifeHere", (Life,), given)
    examples = EXAMPLES[database.name]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=max(examples // 5, 10) if FAST else examples,
            stateful_step_count=STEPS,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
