"""The port on a SQL database: each verb runs statements on one cursor, in one transaction."""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import itemgetter
from typing import Any

from ade.domain.errors import AdeError
from ade.domain.ids import uuid7
from ade.domain.keys import work_id
from ade.store import job_log
from ade.store.agent_jobs import AgentJobChanges
from ade.store.agents import AgentChanges
from ade.store.builds import BuildChanges
from ade.store.catalogue import CatalogueChanges
from ade.store.compile import calls, equal_in
from ade.store.consistency import ConsistencyChanges
from ade.store.directory import DirectoryChanges
from ade.store.environment_archives import (
    EnvironmentArchiveChanges,
)
from ade.store.executor import Executor, pieces
from ade.store.job_counts import CounterMemory, JobCountChanges
from ade.store.port import LostRace, Result
from ade.store.queue_pauses import QueuePauseChanges
from ade.store.reading import SqlReading
from ade.store.rows import (
    Append,
    ArtifactRow,
    Claim,
    Claimed,
    ClaimQuery,
    DroppedOutput,
    FinishRow,
    Head,
    HeldOutput,
    IdempotencyRef,
    IdempotencyRow,
    JobRef,
    JobRow,
    Lane,
    LeaseRef,
    Move,
    Moved,
    NewEvent,
    NewExecution,
    OutputBatch,
    Renewal,
    Renewed,
    StopRow,
)
from ade.store.scaling import ScalingChanges
from ade.store.storage_usage import VersionSizes
from ade.store.user_sessions import UserSessionChanges


class SqlTransaction(SqlReading):
    """Change jobs and their logs with one cursor."""

    def __init__(
        self, sql: Executor, version_sizes: VersionSizes, now_us: int, counters: CounterMemory
    ) -> None:
        super().__init__(sql, version_sizes)
        self.now_us = now_us
        # What this transaction changes in the counters of jobs.
        self.job_counts = JobCountChanges(sql, counters)
        self.topics: dict[str, None] = {}

    @cached_property
    def catalogue(self) -> CatalogueChanges:
        """Change documents, configurations and versions."""
        return CatalogueChanges(self._sql, self.usage, self.now_us)

    @cached_property
    def builds(self) -> BuildChanges:
        """Change builds."""
        return BuildChanges(self._sql, self.now_us)

    @cached_property
    def directory(self) -> DirectoryChanges:
        """Change workspaces, users, members and API keys."""
        return DirectoryChanges(self._sql, self.now_us)

    @cached_property
    def user_sessions(self) -> UserSessionChanges:
        """Change the sessions of browsers."""
        return UserSessionChanges(self._sql, self.now_us)

    @cached_property
    def environment_archives(self) -> EnvironmentArchiveChanges:
        """Change the archives of environments."""
        return EnvironmentArchiveChanges(self._sql, self.now_us)

    @cached_property
    def scaling(self) -> ScalingChanges:
        """Change the scalers and their blocks."""
        return ScalingChanges(self._sql, self.now_us)

    @cached_property
    def agent_jobs(self) -> AgentJobChanges:
        """Change what is known of the jobs of agents, and of the hosts."""
        return AgentJobChanges(self._sql, self.now_us)

    @cached_property
    def agents(self) -> AgentChanges:
        """Change the agents that were enrolled."""
        return AgentChanges(self._sql, self.now_us)

    @cached_property
    def queue_pauses(self) -> QueuePauseChanges:
        """Change which workspaces and kinds are paused."""
        return QueuePauseChanges(self._sql)

    @cached_property
    def consistency(self) -> ConsistencyChanges:
        """Repair rows that contradict each other."""
        return ConsistencyChanges(self._sql, self.now_us)

    def attempt(self, work: Callable[["SqlTransaction"], Result]) -> Result | AdeError:
        """Run work beside that of others; return its result, or the error that it was refused with.

        A refusal that comes before any row was changed is returned, and the others commit. One that
        comes later is raised: only a rollback of the whole transaction can undo its changes.
        """
        before = self._sql.rows_changed
        try:
            return work(self)
        except AdeError as refusal:
            if self._sql.rows_changed != before:
                raise
            return refusal

    def notify(self, *topics: str) -> None:
        """Publish these topics to their waiters, once the transaction has committed."""
        self.topics.update(dict.fromkeys(topics))

    def register_executions(self, new: Sequence[NewExecution]) -> list[JobRow]:
        """Register jobs for their work, and return the jobs that were registered before."""
        registrations = _by_work_id(new)
        # In the order of their index: neighbours share a page, and two transactions that insert the
        # same keys cannot deadlock.
        if self._sql.run_many("register_executions", sorted(registrations)) == len(new):
            return []
        works: dict[str, list[str]] = {}
        for one, (work, _) in zip(new, registrations, strict=True):
            works.setdefault(one.workspace_id, []).append(work)
        as_parameter = self._sql.dialect.list_parameter
        registered = [
            JobRef(workspace_id, job_id)
            for workspace_id, some in works.items()
            for (job_id,) in self._sql.rows("find_executions", as_parameter(some))
        ]
        if len(registered) < len(new):
            raise LostRace("a job that was registered for the same work was deleted")
        own = {one.job_id for one in new}
        others = [ref for ref in registered if ref.id not in own]
        return self._sql.each("read_jobs", others, JobRow._make)

    def insert_jobs(
        self, born: Sequence[JobRow], payloads: Sequence[str], first_events: Mapping[str, str]
    ) -> None:
        """Insert jobs with their first events, whose data depend on the status."""
        for rows, some_payloads in zip(pieces(born), pieces(payloads), strict=True):
            columns: dict[str, Sequence[Any]] = dict(
                zip(JobRow._fields, zip(*rows, strict=True), strict=True)
            )
            columns["payload"] = some_payloads
            columns["history"] = _lines(
                lambda at, status: job_log.first_line(at, status, first_events[status]),
                columns["submitted_at"],
                columns["status"],
            )
            equal = equal_in(columns)
            for name in ("insert_requests", "insert_jobs"):
                for sql, parameters in calls(self._sql.compiler, name, columns, equal):
                    self._sql.cursor.execute(sql, parameters)
            self._sql.rows_changed += len(rows)
        self.job_counts.born(born)

    def forget_executions(self, registered: Sequence[NewExecution]) -> None:
        """Delete the registrations of jobs for their work."""
        self._sql.run_many("forget_executions", _by_work_id(registered))

    def find_idempotency(self, ref: IdempotencyRef) -> IdempotencyRow | None:
        """Find the answer to a request by its idempotency key."""
        found = self._sql.rows("find_idempotency", *ref)
        return IdempotencyRow._make(found[0]) if found else None

    def insert_idempotency(self, row: IdempotencyRow) -> None:
        """Insert an idempotency key, with the answer if there is one already."""
        self._sql.run("insert_idempotency", *row)

    def answer_idempotency(self, row: IdempotencyRow) -> None:
        """Record the answer to a request that had none yet."""
        self._sql.run("answer_idempotency", *row)

    def delete_idempotency(self, created_before: int) -> int:
        """Delete old idempotency keys."""
        return self._sql.run("delete_idempotency", created_before)

    def pass_gate(self, name: str) -> None:
        """Wait until no other transaction is between this gate and its end."""
        self._sql.run("pass_gate", name)

    def count_waiting(self, pool: str, limit: int) -> int:
        """Count waiting jobs of a pool, up to about a number."""
        return int(self._sql.rows("count_waiting", pool, limit)[0][0])

    def count_waiting_in(self, workspace_id: str, pool: str, limit: int) -> int:
        """Count waiting jobs of a workspace in a pool, up to about a number."""
        return int(self._sql.rows("count_waiting_in", workspace_id, pool, limit)[0][0])

    def lock_lanes(self, lanes: Sequence[Lane]) -> None:
        """Keep others from changing which job is next in these lanes."""
        names = [f"{lane.workspace_id}/{lane.target_id}" for lane in lanes]
        self._sql.dialect.lock_lanes(self._sql.cursor, names)

    def held_lanes(self, lanes: Sequence[Lane]) -> set[Lane]:
        """Find which of these lanes have a holder."""
        return set(self._sql.each("held_lanes", lanes, Lane._make))

    def promote_lanes(self, lanes: Sequence[Lane]) -> list[Head]:
        """Make the first queued job of each free lane eligible."""
        return self._sql.each("promote_lanes", lanes, Head._make)

    def stalled_lanes(self, limit: int) -> list[Lane]:
        """Find lanes with queued jobs and no holder."""
        return [Lane._make(row) for row in self._sql.rows("stalled_lanes", limit)]

    def clear_lane(self, lease: LeaseRef, source: str) -> list[Moved]:
        """Take the lane from a job that ended without success."""
        return self._sql.each("clear_lane", [(*lease, source)], Moved._make)

    def next_workspaces(self, pool: str, after: str, limit: int) -> list[str]:
        """List workspaces with eligible jobs, in order, after a given one."""
        return [row[0] for row in self._sql.rows("next_workspaces", pool, after, limit)]

    def others_wait(self, pool: str, workspace_id: str) -> bool:
        """Tell whether any other workspace has eligible jobs."""
        return self._sql.rows("others_wait", pool, workspace_id)[0][0] is not None

    def claim(self, query: ClaimQuery) -> Claimed:
        """Take those of the next eligible jobs of a workspace that the claimer can run; log it."""
        line = job_log.started_line(query.event_type, query.cause, json.dumps(query.owner))
        take = self._claim_at_once if self._sql.dialect.chains_changes else self._pick_and_take
        claimed = take(query, line)
        self.job_counts.claimed(query, claimed.jobs)
        return claimed

    def _pick_and_take(self, query: ClaimQuery, line: tuple[str, str]) -> Claimed:
        """Claim with two statements, where one cannot return what it changed."""
        picked = list(map(_as_claim, self._sql.rows("pick", *query)))
        taken = picked
        if query.kinds is not None:
            taken = [job for job in picked if job.kind in query.kinds]
        if taken:
            now = max(map(_started_at, taken))
            if now > query.now or query.started_at is None:
                started_at = None if query.started_at is None else now
                query = query._replace(now=now, started_at=started_at)
                taken = [claim._replace(started_at=started_at) for claim in taken]
            addresses = self._sql.dialect.list_parameter([job.address for job in taken])
            self._sql.run("take", *query, *line, addresses)
        return Claimed(taken, len(taken) < len(picked))

    def _claim_at_once(self, query: ClaimQuery, line: tuple[str, str]) -> Claimed:
        """Claim with one statement, which returns only what it took."""
        if query.kinds is None:
            claimed = list(map(_as_claim, self._sql.rows("claim", *query, *line)))
            passed_over = False
        else:
            found = self._sql.rows("claim_of_kinds", *self._with_list(query), *line)
            claimed = [_as_claim(row[:-1]) for row in found]
            passed_over = not found or found[0][-1] > len(found)
        claimed.sort(key=_place_in_line)
        return Claimed(claimed, passed_over)

    def _with_list(self, query: ClaimQuery) -> ClaimQuery:
        return query._replace(kinds=self._sql.dialect.list_parameter(list(query.kinds)))

    def set_aside(self, query: ClaimQuery, limit: int) -> int:
        """Make those of the next eligible jobs that the claimer cannot run wait for their kind."""
        return self._sql.run("set_aside", *self._with_list(query._replace(limit=limit)))

    def kinds_set_aside(self, pool: str, kinds: Collection[str]) -> list[str]:
        """Find of which of these kinds jobs are set aside."""
        found = self._sql.each("kinds_set_aside", [(pool, kind) for kind in sorted(kinds)], tuple)
        return [row[0] for row in found]

    def recall(self, pool: str, kind: str, limit: int) -> int:
        """Make jobs of a kind that were set aside eligible again, and count them."""
        return self._sql.run("recall", pool, kind, limit)

    def put_worker(
        self,
        name: str,
        host: str,
        kinds: str,
        slots: int = 0,
        drains_at: int | None = None,
        block: str | None = None,
    ) -> None:
        """Note that a worker is running, now, and that its block has started it."""
        now = self.now_us
        if self._sql.run("refresh_worker", name, kinds, now, slots, drains_at) == 0:
            self._sql.run("insert_worker", name, host, kinds, now, now, slots, drains_at, block)
            if block is not None:
                self._sql.run("register_block", block, now)

    def delete_worker(self, name: str) -> None:
        """Forget a worker that has stopped, and note that its block's pilot has left."""
        self._sql.run("leave_block", name, self.now_us)
        self._sql.run("delete_worker", name)

    def delete_silent_workers(self, seen_before: int) -> int:
        """Forget workers that were not seen for long."""
        return self._sql.run("delete_silent_workers", seen_before)

    def renew(self, renewals: Sequence[Renewal]) -> list[Renewed]:
        """Keep leases."""
        return self._sql.each("renew", renewals, Renewed._make)

    def finish(self, rows: Sequence[FinishRow]) -> list[bool]:
        """Record how running attempts ended, and log it; False for one that lost its lease."""
        recorded = self._record_ends(rows)
        self.job_counts.ended([row for row, is_new in zip(rows, recorded, strict=True) if is_new])
        return recorded

    def _record_ends(self, rows: Sequence[FinishRow]) -> list[bool]:
        if self._sql.dialect.takes_many:
            found = [row for piece in pieces(rows) for row in self._end("end_returning", piece)]
            if len(found) == len(rows):
                return [True] * len(rows)
            ended = set(found)
            return [row[1:3] in ended for row in rows]
        self._sql.cursor.execute(self._sql.dialect.savepoint)
        if sum(self._end("end_at_address", rows)) == len(rows):
            return [True] * len(rows)
        # A lease was lost, or a row has moved: find each row by its key.
        self._sql.cursor.execute(self._sql.dialect.rollback_to_savepoint)
        return [self._end_one(row) for row in rows]

    def _end_one(self, ending: FinishRow) -> bool:
        line = self._last_line(ending.status, ending.event_data)
        return self._sql.run("end", *ending, self.now_us, line) == 1

    def _last_line(self, status: str, event_data: str) -> str:
        return job_log.line_after_time(f"job.{status}", event_data)

    def _end(self, name: str, endings: Sequence[FinishRow]) -> Iterator[Any]:
        """Record ends with few statements; yield the rows that they return, or how many changed."""
        columns: dict[str, Sequence[Any]] = dict(
            zip(FinishRow._fields, zip(*endings, strict=True), strict=True)
        )
        columns["finished_at"] = [self.now_us] * len(endings)
        self._sql.rows_changed += len(endings)
        columns["line"] = _lines(self._last_line, columns["status"], columns["event_data"])
        equal = equal_in(columns)
        for sql, parameters in calls(self._sql.compiler, name, columns, equal):
            self._sql.cursor.execute(sql, parameters)
            if self._sql.dialect.takes_many:
                yield from self._sql.cursor.fetchall()
            else:
                yield self._sql.dialect.rows_changed(self._sql.cursor)

    def move(self, moves: Sequence[Move]) -> list[Moved]:
        """Move jobs out of the status and fence that were seen, and log it."""
        refs = [JobRef(move.workspace_id, move.id) for move in moves]
        own, last_at = dict[JobRef, list[NewEvent]](), dict[JobRef, int]()
        for workspace_id, id_, history, at in self._sql.each("read_histories", refs, tuple):
            ref = JobRef(workspace_id, id_)
            own[ref] = job_log.parse(*ref, history)
            last_at[ref] = max(at or 0, own[ref][-1].at if own[ref] else 0)
        moves = [_no_earlier(move, last_at.get(JobRef(*move[:2]), 0)) for move in moves]
        wanted = {move[:3]: move for move in moves}
        moved = self._sql.each("move", moves, Moved._make)
        log: list[NewEvent] = []
        for seen in moved:
            to = wanted[seen[:3]]
            log += own[JobRef(*seen[:2])]
            log.append(NewEvent(*seen[:2], seen.event_seq, to.at, to.event_type, to.event_data))
        self._sql.run_many("insert_events", log)
        self.job_counts.moved([wanted[seen[:3]] for seen in moved])
        return moved

    def append(self, appends: Sequence[Append]) -> list[Moved]:
        """Reserve positions in event logs for the holder of the lease."""
        return self._sql.each("append", appends, Moved._make)

    def insert_events(self, events: Sequence[NewEvent]) -> None:
        """Append events whose positions were reserved by a change of their job."""
        self._sql.run_many("append_events", events)

    def hold_output(self, leases: Sequence[LeaseRef]) -> list[HeldOutput]:
        """Find how far the output of these attempts is stored; none for one that lost its lease."""
        return self._sql.each("hold_output", leases, HeldOutput._make)

    def insert_output(self, batches: Sequence[OutputBatch]) -> None:
        """Append output of attempts whose leases are held."""
        self._sql.run_many("insert_output", batches)

    def drop_output(self, dropped: Sequence[DroppedOutput]) -> None:
        """Delete the middle of what attempts wrote."""
        self._sql.run_many("drop_output", dropped)

    def drop_attempts(self, last: Sequence[LeaseRef]) -> None:
        """Delete the output of jobs' attempts up to these."""
        self._sql.run_many("drop_attempts", last)

    def request_stop(self, stops: Sequence[StopRow]) -> list[Moved]:
        """Ask running attempts to stop."""
        return self._sql.each("request_stop", stops, Moved._make)

    def report_started(self, lease: LeaseRef, at: int) -> list[Moved]:
        """Record that a dispatched attempt has begun."""
        return self._sql.each("report_started", [(*lease, at)], Moved._make)

    def lock_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read jobs and keep others from changing them until the end."""
        return self._sql.each("lock_jobs", refs, JobRow._make)

    def lock_free_jobs(self, refs: Sequence[JobRef]) -> list[JobRow]:
        """Read and lock jobs, passing over those that others have locked."""
        return self._sql.each("lock_free_jobs", refs, JobRow._make)

    def due_jobs(self, pool: str, limit: int) -> list[JobRow]:
        """Find jobs whose time has come."""
        return [JobRow._make(row) for row in self._sql.rows("due_jobs", pool, self.now_us, limit)]

    def expired_jobs(self, limit: int) -> list[JobRow]:
        """Find running jobs whose lease has expired, by this process's time and the database's.

        The database's clock may have been stepped since this process asked for it, and other
        processes have renewed in the new time: the database is asked again, after the rows.
        """
        found = [JobRow._make(row) for row in self._sql.rows("expired_jobs", self.now_us, limit)]
        if not found:
            return []
        now_us = self._sql.dialect.server_now_us(self._sql.cursor.connection)
        return [job for job in found if now_us is None or (job.lease_expires_at or 0) < now_us]

    def overdue_jobs(self, grace_us: int, limit: int) -> list[JobRow]:
        """Find running jobs that are over their timeout although their lease is alive."""
        late_since = self.now_us - grace_us
        return [JobRow._make(row) for row in self._sql.rows("overdue_jobs", late_since, limit)]

    def jobs_of_build(self, workspace_id: str, build_id: str) -> list[JobRow]:
        """Lock jobs that wait for a build."""
        return [
            JobRow._make(row) for row in self._sql.rows("jobs_of_build", workspace_id, build_id)
        ]

    def insert_artifacts(self, new: Sequence[ArtifactRow]) -> None:
        """Insert the files that results name."""
        self._sql.run_many("insert_artifacts", new)

    def delete_artifacts(self, refs: Sequence[JobRef]) -> None:
        """Delete the artifacts of jobs."""
        self._sql.run_many("delete_artifacts", refs)

    def delete_finished(self, workspace_id: str, finished_before: int, limit: int) -> list[JobRef]:
        """Delete old finished jobs with their logs, and return which; locked ones are skipped."""
        newest = uuid7(finished_before, 0)
        found = self._sql.rows("finished_jobs", workspace_id, newest, finished_before, limit)
        refs = [JobRef(workspace_id, row[1]) for row in found]
        self.forget_executions([NewExecution(ws, key, id_) for ws, id_, key, *_ in found if key])
        self._delete_rows(refs)
        for _, _, _, status, pool, kind, priority, _ in found:
            self.job_counts.gone(workspace_id, (pool, kind, priority), status)
        return refs

    def delete_job(self, job: JobRow) -> None:
        """Delete a finished job with its logs; the caller has locked it."""
        ref = JobRef(job.workspace_id, job.id)
        if job.execution_key:
            self.forget_executions([NewExecution(job.workspace_id, job.execution_key, job.id)])
        self._delete_rows([ref])
        facets = (job.pool, job.kind, job.priority)
        self.job_counts.gone(job.workspace_id, facets, job.status)

    def _delete_rows(self, refs: list[JobRef]) -> None:
        for name in (
            "delete_artifacts",
            "delete_events",
            "delete_output",
            "delete_agent_jobs",
            "delete_jobs",
            "delete_requests",
        ):
            self._sql.run_many(name, refs)


def _no_earlier(move: Move, recorded_at: int) -> Move:
    """Let a move take place no earlier than what was recorded of its job before."""
    if move.at >= recorded_at:
        return move
    finished_at = None if move.finished_at is None else recorded_at
    return move._replace(at=recorded_at, finished_at=finished_at)


def _by_work_id(new: Iterable[NewExecution]) -> list[tuple[str, str]]:
    return [(work_id(workspace_id, key), job_id) for workspace_id, key, job_id in new]


def _lines(write: Callable[..., str], *parts: Sequence[Any]) -> tuple[str, ...]:
    """Write the lines of many events, and equal ones once."""
    events = list(zip(*parts, strict=True))
    if events.count(events[0]) == len(events):
        return (write(*events[0]),) * len(events)
    lines = {event: write(*event) for event in set(events)}
    return tuple(lines[event] for event in events)


# These run for every job: without a Python function call for each tuple.
_as_claim = partial(tuple.__new__, Claim)
_started_at = itemgetter(Claim._fields.index("started_at"))
_place_in_line = itemgetter(Claim._fields.index("rank"), Claim._fields.index("id"))
