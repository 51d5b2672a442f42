"""Every statement on jobs and their logs, each a named function that says what it is for.

A statement that changes a job's state carries its precondition in its WHERE: the status that was
seen and, where a lease is involved, the fence. No row changed means that someone else was first.
"""

from typing import Any

from ade.store import rows
from ade.store.statements import changing, claiming, submitting, sweeping, waiting
from ade.store.statements.statement import Statement

__all__ = ["STATEMENTS", "Statement"]


def _fields(row: type[Any], *more: str) -> tuple[str, ...]:
    return tuple(row._fields) + more


_OWN = frozenset({"id", "execution_key", "payload"})
_CLAIM_LINE = ("line_before", "line_after")
_ENDING = _fields(rows.Ending, "finished_at", "line")

STATEMENTS: dict[str, Statement] = {
    "insert_requests": Statement(submitting.insert_requests, submitting.BORN, differs=_OWN),
    "insert_jobs": Statement(submitting.insert_jobs, submitting.BORN, differs=_OWN),
    "register_executions": Statement(submitting.register_executions, submitting.STAND),
    "find_executions": Statement(submitting.find_executions, ("work_ids",), many=False),
    "forget_executions": Statement(submitting.forget_executions, submitting.STAND),
    "find_idempotency": Statement(
        submitting.find_idempotency, _fields(rows.IdempotencyRef), many=False
    ),
    "insert_idempotency": Statement(
        submitting.insert_idempotency, _fields(rows.IdempotencyRow), many=False
    ),
    "answer_idempotency": Statement(
        submitting.answer_idempotency, _fields(rows.IdempotencyRow), many=False
    ),
    "delete_idempotency": Statement(submitting.delete_idempotency, ("created_at",), many=False),
    "pass_gate": Statement(submitting.pass_gate, ("name",), many=False),
    "count_waiting": Statement(submitting.count_waiting, ("pool", "limit"), many=False),
    "count_waiting_in": Statement(
        submitting.count_waiting_in, ("workspace_id", "pool", "limit"), many=False
    ),
    "held_lanes": Statement(waiting.held_lanes, _fields(rows.Lane)),
    "next_workspaces": Statement(
        lambda d, g: d.next_workspaces(g), ("pool", "workspace_id", "limit"), many=False
    ),
    "others_wait": Statement(claiming.others_wait, ("pool", "workspace_id"), many=False),
    "claim": Statement(claiming.claim, _fields(rows.Ask, *_CLAIM_LINE), many=False),
    "pick": Statement(claiming.pick, _fields(rows.Ask), many=False),
    "take": Statement(claiming.take, _fields(rows.Ask, *_CLAIM_LINE, "addresses"), many=False),
    "renew": Statement(changing.renew, _fields(rows.Renewal)),
    "move": Statement(changing.move, _fields(rows.Move)),
    "end": Statement(changing.end, _ENDING),
    "end_there": Statement(changing.end_there, _ENDING, differs=frozenset({"id", "address"})),
    "end_telling": Statement(changing.end_telling, _ENDING, differs=frozenset({"id"})),
    "read_histories": Statement(changing.read_histories, _fields(rows.JobRef)),
    "append": Statement(changing.append, _fields(rows.Append)),
    "request_stop": Statement(changing.request_stop, _fields(rows.StopAsk)),
    "report_started": Statement(changing.report_started, _fields(rows.Held, "at")),
    "insert_events": Statement(changing.insert_events, _fields(rows.NewEvent)),
    "read_jobs": Statement(changing.read_jobs, _fields(rows.JobRef)),
    "lock_jobs": Statement(changing.lock_jobs, _fields(rows.JobRef)),
    "lock_free_jobs": Statement(changing.lock_free_jobs, _fields(rows.JobRef)),
    "promote_lanes": Statement(waiting.promote_lanes, _fields(rows.Lane)),
    "clear_lane": Statement(waiting.clear_lane, _fields(rows.Held, "source")),
    "stalled_lanes": Statement(waiting.stalled_lanes, ("limit",), many=False),
    "lane_jobs": Statement(waiting.lane_jobs, _fields(rows.Lane), many=False),
    "due_jobs": Statement(waiting.due_jobs, ("pool", "now", "limit"), many=False),
    "jobs_of_build": Statement(waiting.jobs_of_build, ("workspace_id", "build_id"), many=False),
    "read_builds": Statement(waiting.read_builds, _fields(rows.JobRef)),
    "expired_jobs": Statement(sweeping.expired_jobs, ("now", "limit"), many=False),
    "overdue_jobs": Statement(sweeping.overdue_jobs, ("now", "limit"), many=False),
    "finished_jobs": Statement(
        sweeping.finished_jobs, ("workspace_id", "id", "finished_at", "limit"), many=False
    ),
    "insert_artifacts": Statement(changing.insert_artifacts, _fields(rows.ArtifactRow)),
    "delete_artifacts": Statement(sweeping.delete_artifacts, _fields(rows.JobRef)),
    "delete_events": Statement(sweeping.delete_events, _fields(rows.JobRef)),
    "delete_requests": Statement(sweeping.delete_requests, _fields(rows.JobRef)),
    "delete_jobs": Statement(sweeping.delete_jobs, _fields(rows.JobRef)),
}
