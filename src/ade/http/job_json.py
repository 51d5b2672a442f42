"""A job as the API shows it.

The text is put together by hand: limits, usage, progress, isolation and error are stored as JSON
and go into it as they are, and the rest is a dozen words that need no escaping. A submission is
answered in the time that a parser and a serialiser would need for their set-up.
"""

from json.encoder import encode_basestring_ascii as quoted
from typing import Any

from ade.app.times import rfc3339
from ade.domain.job import AGENT_POOL, TERMINAL, Status
from ade.store.port import Reading
from ade.store.rows import JobRow, Lane

AHEAD_COUNTED_MAX = 10_000
NO_USAGE = '{"cpu_ms": 0, "memory_mb_peak": 0}'
WAITS = frozenset({Status.PENDING.value, Status.QUEUED.value})
ENDED = frozenset(status.value for status in TERMINAL)
SAFE_MODE = "ADE_SAFE_MODE is enabled: nothing is started."


def job_path(slug: str, job_id: str) -> str:
    """Return where a job is found."""
    return f"/api/v1/workspaces/{slug}/jobs/{job_id}"


def job_text(
    job: JobRow,
    slug: str,
    *,
    deduplicated: bool = False,
    safe_mode: bool = False,
    waiting: str | None = None,
) -> str:
    """Write a job as JSON; `waiting` is what `waiting_text` made of it, if a place was counted."""
    path = f"/api/v1/workspaces/{slug}/jobs/{job.id}"
    started, finished = job.started_at, job.finished_at
    key = "null" if job.execution_key is None else f'"{job.execution_key}"'
    if job.status not in WAITS:
        waiting = "null"
    elif waiting is None:
        waiting = waiting_text(job, safe_mode=safe_mode)
    return (
        f'{{"job_id": "{job.id}", "workspace_id": "{job.workspace_id}",'
        f' "job_type": {quoted(job.kind)}, "status": "{job.status}",'
        f' "priority": "{job.priority}", "target_id": {_text(job.target_id)},'
        f' "execution_key": {key},'
        f' "deduplicated": {"true" if deduplicated else "false"},'
        f' "rerun_of": {_text(job.rerun_of)}, "attempt": {job.fence},'
        f' "stop_request": {_text(job.stop_request)},'
        f' "submitted_by": {quoted(job.submitted_by)},'
        f' "submitted_at": "{rfc3339(job.submitted_at)}", "started_at": {_time(started)},'
        f' "finished_at": {_time(finished)}, "duration_ms": {_duration_ms(started, finished)},'
        f' "waiting": {waiting}, "limits": {job.limits},'
        f' "resource_usage": {job.usage or NO_USAGE}, "isolation": {job.isolation or "[]"},'
        f' "error": {job.error or "null"}, "progress": {job.progress or "null"},'
        f' "links": {{"self": "{path}", "events": "{path}/events", "logs": "{path}/logs",'
        f' "result": "{path}/result", "artifact": "{path}/artifact", "output": "{path}/output"}}}}'
    )


# No text in JSON holds these characters, so they can stand where an identifier will be.
_MARK, _KEY_MARK = "\0", "\1"


class Mould:
    """Write many new jobs that differ in little more than their identifiers.

    What is equal in a row of jobs is written once, and each job's own identifier put into it.
    """

    def __init__(self, slug: str, *, safe_mode: bool) -> None:
        self._slug = slug
        self._safe_mode = safe_mode
        self._rest: tuple[object, ...] = ()
        self._before_key: list[str] = []
        self._behind_key: list[str] = []

    def text(self, job: JobRow, *, deduplicated: bool) -> str:
        """Write a job as `job_text` would."""
        job_id, key = job.id, job.execution_key
        if key is None:
            return job_text(job, self._slug, deduplicated=deduplicated, safe_mode=self._safe_mode)
        rest = (deduplicated, job.workspace_id, job[2:_KEY_AT], job[_KEY_AT + 1 :])
        if rest != self._rest:
            marked = job._replace(id=_MARK, execution_key=_KEY_MARK)
            text = job_text(
                marked, self._slug, deduplicated=deduplicated, safe_mode=self._safe_mode
            )
            before, _, behind = text.partition(_KEY_MARK)
            self._rest = rest
            self._before_key, self._behind_key = before.split(_MARK), behind.split(_MARK)
        return f"{job_id.join(self._before_key)}{key}{job_id.join(self._behind_key)}"


_KEY_AT = JobRow._fields.index("execution_key")


def _text(value: str | None) -> str:
    return "null" if value is None else quoted(value)


def _time(at_us: int | None) -> str:
    return "null" if at_us is None else f'"{rfc3339(at_us)}"'


def _duration_ms(started: int | None, finished: int | None) -> str:
    return "null" if started is None or finished is None else str((finished - started) // 1000)


def waiting_text(
    job: JobRow, *, safe_mode: bool, position: int | None = None, holder: JobRow | None = None
) -> str:
    """Write why a job waits; the position counts from 1, within its workspace."""
    reason, detail = _reason(job, safe_mode, holder)
    place = "null" if position is None else str(position)
    return f'{{"reason": "{reason}", "detail": {quoted(detail)}, "position": {place}}}'


def _reason(job: JobRow, safe_mode: bool, holder: JobRow | None) -> tuple[str, str]:
    if safe_mode:
        return "safe_mode", SAFE_MODE
    if job.not_before is not None:
        return "schedule", f"It may start at {rfc3339(job.not_before)}."
    if not job.eligible and job.target_id is not None:
        if holder is None:
            return "lane", "Other jobs of its target come first."
        return "lane", f"Job {holder.id} of its target is {holder.status}."
    if not job.eligible and job.build_id is not None:
        return "build", "Its build is not ready yet."
    if job.pool == AGENT_POOL:
        return "agent", "It waits for an agent that may take it."
    return "capacity", "It waits for a free worker."


def read_waiting(reading: Reading, job: JobRow, *, safe_mode: bool) -> str | None:
    """Find out why a job waits and how many are before it, if it does."""
    if job.status not in WAITS:
        return None
    position, holder = None, None
    if job.eligible:
        position = reading.count_ahead(job, AHEAD_COUNTED_MAX) + 1
    elif job.target_id is not None:
        holders = reading.lane_holders(Lane(job.workspace_id, job.target_id))
        holder = next((one for one in holders if one.id != job.id), None)
    return waiting_text(job, safe_mode=safe_mode, position=position, holder=holder)


def page_text(items: list[str], next_cursor: str | None) -> bytes:
    """Write a page of a list."""
    cursor: Any = "null" if next_cursor is None else quoted(next_cursor)
    return f'{{"items": [{", ".join(items)}], "next_cursor": {cursor}}}'.encode()
