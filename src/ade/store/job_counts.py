"""How many jobs there are of each status, kind, priority and pool, without counting them.

The model. A transaction notes each change of a status as a pair of differences (one less here, one
more there) and adds their sums to the counters when it ends, in itself: what commits is counted,
what is rolled back is not, and a crash leaves both or neither. The counters are exact for any
reader, in the snapshot in which it reads the jobs.

    concern                          answer
    -------------------------------  ------------------------------------------------------------
    processes wait for each other    each process has counters of its own, one of SHARDS; a reader
                                     adds them up. Two that share a shard wait for one commit
    deadlocks                        the counters are changed last, in the order of their keys
    the kind of a job that ended     is remembered since its submission or claim in this process,
                                     else read
    rows that were changed by hand   are not counted; `ade db check` compares, and counts anew

A shard alone may be negative: jobs are submitted by one process and finished by another.
"""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from ade.store.executor import Executor
from ade.store.port import LostRace
from ade.store.rows import Claim, ClaimQuery, FinishRow, JobRef, JobRow, Move

SHARDS = 16
# Of how many jobs a process remembers the kind. What is forgotten is read.
REMEMBERED_MAX = 10_000
QUEUED, RUNNING = "queued", "running"


# Plain tuples, because one is made for each job. What a job is counted by, besides its workspace
# and status, and never changes: pool, kind, priority. And the key of a counter: workspace, pool,
# kind, priority, status.
Facets = tuple[str, str, str]
CountKey = tuple[str, str, str, str, str]


class CounterMemory:
    """Remember, for the one connection that writes, its shard, its counters, and kinds of jobs."""

    def __init__(self, shard: int | None = None) -> None:
        self.shard = random.randrange(SHARDS) if shard is None else shard
        # The counters whose rows exist; only what has committed is in here.
        self.keys: set[CountKey] = set()
        self.facets: dict[str, Facets] = {}

    def remember(self, jobs: Iterable[tuple[str, Facets]]) -> None:
        """Remember jobs; when there are too many, the older half is forgotten."""
        self.facets.update(jobs)
        if len(self.facets) > REMEMBERED_MAX:
            for old in list(self.facets)[: -REMEMBERED_MAX // 2]:
                del self.facets[old]


class JobCountChanges:
    """Note how a transaction changes the counters, and change them at its end."""

    def __init__(self, sql: Executor, memory: CounterMemory) -> None:
        self._sql = sql
        self._memory = memory
        self._changes: Counter[CountKey] = Counter()

    def born(self, jobs: Sequence[JobRow]) -> None:
        """Note jobs that were inserted."""
        counted = Counter([(j.workspace_id, j.pool, j.kind, j.priority, j.status) for j in jobs])
        for key, count in counted.items():
            self._changes[key] += count
        self._memory.remember((job.id, (job.pool, job.kind, job.priority)) for job in jobs)

    def claimed(self, query: ClaimQuery, claims: Sequence[Claim]) -> None:
        """Note jobs that were taken from the queue."""
        pool, workspace_id = query.pool, query.workspace_id
        for facets, count in Counter([(pool, c.kind, c.priority) for c in claims]).items():
            self._move(workspace_id, facets, QUEUED, RUNNING, count)
        self._memory.remember((c.id, (pool, c.kind, c.priority)) for c in claims)

    def ended(self, rows: Sequence[FinishRow]) -> None:
        """Note attempts whose end was recorded."""
        self._note([(row.workspace_id, row.id, RUNNING, row.status) for row in rows])

    def moved(self, moves: Sequence[Move]) -> None:
        """Note jobs that were moved."""
        self._note([(m.workspace_id, m.id, m.source, m.status) for m in moves])

    def _note(self, changes: Sequence[tuple[str, str, str, str]]) -> None:
        """Note changes of status: workspace, job, source and target of each."""
        known = self._memory.facets
        missing = [JobRef(ws, id_) for ws, id_, _, _ in changes if id_ not in known]
        if missing:  # a job without its request is not counted
            read: list[Any] = self._sql.each("read_facets", missing, tuple)
            known = known | {str(id_): tuple(facets) for id_, *facets in read}
        counted = Counter(
            [(ws, known[id_], before, after) for ws, id_, before, after in changes if id_ in known]
        )
        for (workspace_id, facets, before, after), count in counted.items():
            self._move(workspace_id, facets, before, after, count)

    def gone(self, workspace_id: str, facets: Facets, status: str) -> None:
        """Note a job that was deleted."""
        self._changes[workspace_id, *facets, status] -= 1

    def flush(self) -> set[CountKey]:
        """Add the differences to the counters; return those that exist once this commits."""
        changes = sorted((key, change) for key, change in self._changes.items() if change)
        self._changes.clear()
        if not changes:
            return set()
        shard = self._memory.shard
        new = [key for key, _ in changes if key not in self._memory.keys]
        self._sql.run_many("insert_counters", [(*key, shard, 0) for key in new])
        rows = [(*key, shard, change) for key, change in changes]
        if self._sql.run_many("add_to_counters", rows) != len(rows):
            self._memory.keys.clear()  # someone has deleted rows: insert them again
            raise LostRace("counters of jobs were deleted")
        return set(new)

    def recount(self) -> None:
        """Count all jobs anew, while no other transaction can commit a change of a counter."""
        self._sql.dialect.plan_freely(self._sql.cursor)
        self._sql.dialect.lock_table(self._sql.cursor, "job_counts")
        self._sql.run("delete_counters")
        self._sql.run("count_anew")
        self._changes.clear()  # what this transaction has changed so far is counted with the rest
        self._memory.keys.clear()
        self._memory.facets.clear()

    def _move(self, workspace_id: str, facets: Facets, source: str, status: str, n: int) -> None:
        self._changes[workspace_id, *facets, source] -= n
        self._changes[workspace_id, *facets, status] += n
