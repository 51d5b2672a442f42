"""Find rows that contradict each other, and repair some of them, in one transaction."""

from collections.abc import Iterator, Sequence

from ade.store import job_log
from ade.store.dialects.dialect import FIRST_ID
from ade.store.executor import Executor
from ade.store.rows import JobRef
from ade.store.sql import Statement, checks

JOBS_PER_READ_MAX = 500


class ConsistencyReading:
    """Find what is wrong, by the names of `ade.store.sql.checks`."""

    def __init__(self, sql: Executor) -> None:
        self._sql = sql
        sql.dialect.plan_freely(sql.cursor)

    def count(self, name: str) -> int:
        """Count what is wrong in one way."""
        statement = Statement(checks.count(name), (), many=False)
        return int(self._sql.adhoc(("count", name), lambda: statement)[0][0])

    def find(self, name: str, limit: int) -> list[JobRef]:
        """List what is wrong in one way, up to a number."""
        statement = Statement(checks.find(name), ("limit",), many=False)
        found = self._sql.adhoc(("find", name), lambda: statement, limit)
        return [JobRef(*map(str, row)) for row in found]

    def gaps(self, after: JobRef, limit: int) -> tuple[list[JobRef], JobRef | None]:
        """Look at the logs of some jobs: return those with a gap, and the last job looked at."""
        fields = ("workspace_id", "id", "limit")
        statement = Statement(checks.jobs_after, fields, many=False)
        found = self._sql.adhoc("jobs_after", lambda: statement, *after, limit)
        wrong = [
            JobRef(workspace_id, id_)
            for workspace_id, id_, seq, history, counted in found
            if counted + len(job_log.parse(workspace_id, id_, history)) != seq
        ]
        return wrong, JobRef(*found[-1][:2]) if found else None

    def blobs(self) -> Iterator[tuple[JobRef, str]]:
        """Name all artifacts with their digests, a page at a time."""
        fields = ("workspace_id", "id", "limit")
        statement = Statement(checks.artifacts_after, fields, many=False)
        after = JobRef(FIRST_ID, FIRST_ID)
        while found := self._sql.adhoc(
            "artifacts_after", lambda: statement, *after, JOBS_PER_READ_MAX
        ):
            yield from ((JobRef(*row[:2]), row[2]) for row in found)
            after = JobRef(*found[-1][:2])


class ConsistencyChanges(ConsistencyReading):
    """Repair what is safe to repair."""

    def __init__(self, sql: Executor, now_us: int) -> None:
        super().__init__(sql)
        self._now_us = now_us

    def repair(self, name: str, refs: Sequence[JobRef]) -> int:
        """Repair these rows if they are still wrong, and count them."""
        statement = Statement(checks.repair(name), ("workspace_id", "id", "now"), many=False)
        compiled = self._sql.compiler.adhoc(("repair", name), lambda: statement)
        changed = 0
        for ref in refs:
            self._sql.cursor.execute(compiled.sql, compiled.arrange((*ref, self._now_us)))
            changed += self._sql.dialect.rows_changed(self._sql.cursor) > 0
        self._sql.rows_changed += changed
        return changed
