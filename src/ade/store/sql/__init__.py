"""Every statement, by name: how it is built, and which fields its parameters are.

A module holds the statements on one thing, each a function with one line that says what it is for.
A statement that changes a job's state carries its precondition in its WHERE: the status that was
seen and, where a lease is involved, the fence. No row changed means that another was first.
"""

from collections.abc import Callable
from typing import Any

from sqlalchemy.sql.base import Executable

from ade.store import rows
from ade.store.dialects.dialect import Dialect
from ade.store.sql import (
    agent_jobs,
    agents,
    builds,
    catalogue,
    claims,
    directory,
    environment_archives,
    job_counts,
    jobs,
    output,
    queue_pauses,
    reads,
    scaling,
    submissions,
    sweeps,
    user_sessions,
    waits,
    workers,
)
from ade.store.sql.statement import Statement

__all__ = ["STATEMENTS", "Statement"]


def _fields(row: type[Any], *more: str) -> tuple[str, ...]:
    return tuple(row._fields) + more


_OWN = frozenset({"id", "execution_key", "payload"})
_CLAIM_LINE = ("line_before", "line_after")
_ENDING = _fields(rows.FinishRow, "finished_at", "line")

_JOBS: dict[str, Statement] = {
    "insert_requests": Statement(submissions.insert_requests, submissions.NEW_JOB, differs=_OWN),
    "insert_jobs": Statement(submissions.insert_jobs, submissions.NEW_JOB, differs=_OWN),
    "register_executions": Statement(submissions.register_executions, submissions.EXECUTION),
    "find_executions": Statement(submissions.find_executions, ("work_ids",), many=False),
    "forget_executions": Statement(submissions.forget_executions, submissions.EXECUTION),
    "find_idempotency": Statement(
        submissions.find_idempotency, _fields(rows.IdempotencyRef), many=False
    ),
    "insert_idempotency": Statement(
        submissions.insert_idempotency, _fields(rows.IdempotencyRow), many=False
    ),
    "answer_idempotency": Statement(
        submissions.answer_idempotency, _fields(rows.IdempotencyRow), many=False
    ),
    "delete_idempotency": Statement(submissions.delete_idempotency, ("created_at",), many=False),
    "pass_gate": Statement(submissions.pass_gate, ("name",), many=False),
    "count_waiting": Statement(submissions.count_waiting, ("pool", "limit"), many=False),
    "count_waiting_in": Statement(
        submissions.count_waiting_in, ("workspace_id", "pool", "limit"), many=False
    ),
    "held_lanes": Statement(waits.held_lanes, _fields(rows.Lane)),
    "next_workspaces": Statement(
        lambda d, p: d.next_workspaces(p), ("pool", "workspace_id", "limit"), many=False
    ),
    "others_wait": Statement(claims.others_wait, ("pool", "workspace_id"), many=False),
    "claim": Statement(claims.claim, _fields(rows.ClaimQuery, *_CLAIM_LINE), many=False),
    "claim_of_kinds": Statement(
        claims.claim_of_kinds, _fields(rows.ClaimQuery, *_CLAIM_LINE), many=False
    ),
    "set_aside": Statement(claims.set_aside, _fields(rows.ClaimQuery), many=False),
    "kinds_set_aside": Statement(claims.kinds_set_aside, ("pool", "needs_kind")),
    "recall": Statement(claims.recall, ("pool", "needs_kind", "limit"), many=False),
    "pick": Statement(claims.pick, _fields(rows.ClaimQuery), many=False),
    "take": Statement(claims.take, _fields(rows.ClaimQuery, *_CLAIM_LINE, "addresses"), many=False),
    "renew": Statement(jobs.renew, _fields(rows.Renewal)),
    "move": Statement(jobs.move, _fields(rows.Move)),
    "end": Statement(jobs.end, _ENDING),
    "end_at_address": Statement(jobs.end_at_address, _ENDING, differs=frozenset({"id", "address"})),
    "end_returning": Statement(jobs.end_returning, _ENDING, differs=frozenset({"id"})),
    "read_histories": Statement(jobs.read_histories, _fields(rows.JobRef)),
    "append": Statement(jobs.append, _fields(rows.Append)),
    "request_stop": Statement(jobs.request_stop, _fields(rows.StopRow)),
    "report_started": Statement(jobs.report_started, _fields(rows.LeaseRef, "at")),
    "insert_events": Statement(jobs.insert_events, _fields(rows.NewEvent)),
    "append_events": Statement(jobs.append_events, _fields(rows.NewEvent)),
    "read_jobs": Statement(jobs.read_jobs, _fields(rows.JobRef)),
    "lock_jobs": Statement(jobs.lock_jobs, _fields(rows.JobRef)),
    "lock_free_jobs": Statement(jobs.lock_free_jobs, _fields(rows.JobRef)),
    "promote_lanes": Statement(waits.promote_lanes, _fields(rows.Lane)),
    "clear_lane": Statement(waits.clear_lane, _fields(rows.LeaseRef, "source")),
    "stalled_lanes": Statement(waits.stalled_lanes, ("limit",), many=False),
    "lane_jobs": Statement(waits.lane_jobs, _fields(rows.Lane), many=False),
    "due_jobs": Statement(waits.due_jobs, ("pool", "now", "limit"), many=False),
    "jobs_of_build": Statement(waits.jobs_of_build, ("workspace_id", "build_id"), many=False),
    "expired_jobs": Statement(sweeps.expired_jobs, ("now", "limit"), many=False),
    "overdue_jobs": Statement(sweeps.overdue_jobs, ("now", "limit"), many=False),
    "finished_jobs": Statement(
        sweeps.finished_jobs, ("workspace_id", "id", "finished_at", "limit"), many=False
    ),
    "insert_artifacts": Statement(jobs.insert_artifacts, _fields(rows.ArtifactRow)),
    "delete_artifacts": Statement(sweeps.delete_artifacts, _fields(rows.JobRef)),
    "delete_events": Statement(sweeps.delete_events, _fields(rows.JobRef)),
    "hold_output": Statement(output.hold_output, _fields(rows.LeaseRef)),
    "insert_output": Statement(output.insert_output, _fields(rows.OutputBatch)),
    "drop_output": Statement(output.drop_output, _fields(rows.DroppedOutput)),
    "drop_attempts": Statement(output.drop_attempts, ("workspace_id", "id", "attempt")),
    "delete_output": Statement(output.delete_output, _fields(rows.JobRef)),
    "delete_requests": Statement(sweeps.delete_requests, _fields(rows.JobRef)),
    "delete_jobs": Statement(sweeps.delete_jobs, _fields(rows.JobRef)),
}


def _one(build: Callable[[Dialect, Any], Executable], *fields: str) -> Statement:
    return Statement(build, fields, many=False)


_IN_WORKSPACE = ("workspace_id", "id")
_PAGE = ("workspace_id", "id", "limit")
_OF_CONFIGURATION = ("workspace_id", "configuration_id")
_CATALOGUE: dict[str, Statement] = {
    "lock_workspace": _one(catalogue.lock_workspace, "id"),
    "insert_document": _one(catalogue.insert_document, *rows.Document._fields),
    "find_document": _one(catalogue.find_document, *_IN_WORKSPACE),
    "list_documents": _one(catalogue.list_documents, *_PAGE),
    "delete_document": _one(catalogue.delete_document, *_IN_WORKSPACE, "deleted_at"),
    "document_digests": _one(catalogue.document_digests),
    "insert_configuration": _one(catalogue.insert_configuration, *rows.Configuration._fields),
    "find_configuration": _one(catalogue.find_configuration, *_IN_WORKSPACE),
    "list_configurations": _one(catalogue.list_configurations, *_PAGE),
    "count_configurations": _one(catalogue.count_configurations, "workspace_id"),
    "delete_configuration": _one(catalogue.delete_configuration, *_IN_WORKSPACE, "deleted_at"),
    "list_draft": _one(catalogue.list_draft, *_OF_CONFIGURATION),
    "insert_draft_file": Statement(catalogue.insert_draft_file, catalogue.DRAFT_FILE),
    "delete_draft_file": _one(catalogue.delete_draft_file, *_OF_CONFIGURATION, "path"),
    "delete_draft": _one(catalogue.delete_draft, *_OF_CONFIGURATION),
    "draft_digests": _one(catalogue.draft_digests),
    "insert_version": _one(catalogue.insert_version, *rows.Version._fields),
    "find_version": _one(catalogue.find_version, *_IN_WORKSPACE),
    "find_version_by_digest": _one(catalogue.find_version_by_digest, *_OF_CONFIGURATION, "digest"),
    "find_version_by_sequence": _one(
        catalogue.find_version_by_sequence, *_OF_CONFIGURATION, "sequence"
    ),
    "list_versions": _one(catalogue.list_versions, *_OF_CONFIGURATION, "sequence", "limit"),
    "newest_sequence": _one(catalogue.newest_sequence, *_OF_CONFIGURATION),
    "manifests_in_use": _one(catalogue.manifests_in_use),
    "find_artifact": _one(catalogue.find_artifact, "id"),
    "find_content": _one(catalogue.find_content, "workspace_id", "digest"),
    "artifact_digests": _one(catalogue.artifact_digests),
    "content_bytes": _one(catalogue.content_bytes, "workspace_id"),
    "draft_sizes": _one(catalogue.draft_sizes, "workspace_id"),
    "count_versions": _one(catalogue.count_versions, "workspace_id"),
    "list_manifests": _one(catalogue.list_manifests, *_OF_CONFIGURATION),
}
_BUILDS: dict[str, Statement] = {
    "insert_build": _one(builds.insert_build, *builds.STORED),
    "find_build": _one(builds.find_build, *_IN_WORKSPACE),
    "read_builds": Statement(builds.read_builds, _fields(rows.JobRef)),
    "find_builds": Statement(builds.find_build, _fields(rows.JobRef)),
    "find_build_of_job": _one(builds.find_build_of_job, "workspace_id", "job_id"),
    "find_build_of": _one(builds.find_build_of, *_OF_CONFIGURATION, "fingerprint"),
    "lock_build_of": _one(builds.lock_build_of, *_OF_CONFIGURATION, "fingerprint"),
    "hold_build_of": _one(builds.hold_build_of, *_OF_CONFIGURATION, "fingerprint"),
    "builds_of_jobs": Statement(builds.builds_of_jobs, _fields(rows.JobRef)),
    "queue_build": _one(builds.queue_build, *_IN_WORKSPACE, "source", "job_id", "version_id"),
    "settle_build": _one(builds.settle_build, *_IN_WORKSPACE, "job_id", *builds.OUTCOME),
    "environments_in_use": _one(builds.environments_in_use),
    "needed_builds": _one(builds.needed_builds, "environment", "limit"),
    "retire_environment": _one(builds.retire_environment, "environment", "error", "finished_at"),
    "versions_of_builds": Statement(builds.versions_of_builds, _IN_WORKSPACE),
    "find_activation": _one(builds.find_activation, *_OF_CONFIGURATION),
    "lock_activation": _one(builds.lock_activation, *_OF_CONFIGURATION),
    "insert_activation": _one(builds.insert_activation, *rows.Activation._fields),
    "change_activation": _one(builds.change_activation, *rows.Activation._fields),
}
_DIRECTORY: dict[str, Statement] = {
    "insert_workspace": _one(directory.insert_workspace, *rows.Workspace._fields),
    "find_workspace": _one(directory.find_workspace, "id"),
    "find_workspace_by_slug": _one(directory.find_workspace_by_slug, "slug"),
    "list_workspaces": _one(directory.list_workspaces, "limit"),
    "insert_user": _one(directory.insert_user, *directory.USER),
    "find_user": _one(directory.find_user, "name"),
    "insert_member": _one(directory.insert_member, *directory.MEMBER),
    "change_role": _one(directory.change_role, "workspace_id", "user_id", "role"),
    "delete_member": _one(directory.delete_member, "workspace_id", "user_id"),
    "find_member": _one(directory.find_member, "workspace_id", "user_id"),
    "list_members": _one(directory.list_members, "workspace_id", "limit"),
    "list_roles": _one(directory.list_roles, "user_id"),
    "insert_key": _one(directory.insert_key, *directory.KEY),
    "count_keys": _one(directory.count_keys),
    "find_key_holder": _one(directory.find_key_holder, "digest"),
    "find_key_by_digest": _one(directory.find_key_by_digest, "digest"),
    "find_key": _one(directory.find_key, *_IN_WORKSPACE),
    "list_keys": _one(directory.list_keys, "workspace_id", "limit"),
    "revoke_key": _one(directory.revoke_key, *_IN_WORKSPACE, "revoked_at"),
    "find_operator_key": _one(directory.find_operator_key, "id"),
    "list_operator_keys": _one(directory.list_operator_keys, "limit"),
    "lock_operator_keys": _one(directory.lock_operator_keys),
    "revoke_operator_key": _one(directory.revoke_operator_key, "id", "revoked_at"),
    "insert_secret": _one(directory.insert_secret, *directory.SECRET),
    "delete_secret": _one(directory.delete_secret, "name"),
    "find_secret": _one(directory.find_secret, "name"),
}
_USER_SESSIONS: dict[str, Statement] = {
    "insert_session": _one(user_sessions.insert_session, *user_sessions.SESSION),
    "find_session": _one(user_sessions.find_session, "digest", "now"),
    "find_session_by_id": _one(user_sessions.find_session_by_id, "id"),
    "touch_session": _one(user_sessions.touch_session, "id", "at", "last_seen_at", "expires_at"),
    "list_sessions": _one(user_sessions.list_sessions, "now", "limit"),
    "list_sessions_of_user": _one(user_sessions.list_sessions_of_user, "user_id", "now", "limit"),
    "list_sessions_of_key": _one(user_sessions.list_sessions_of_key, "key_id", "now", "limit"),
    "least_idle_sessions": _one(user_sessions.least_idle_sessions, "key_id"),
    "expired_sessions": _one(user_sessions.expired_sessions, "now", "limit"),
    "delete_sessions": _one(user_sessions.delete_sessions, "ids"),
    "delete_session_by_digest": _one(user_sessions.delete_session_by_digest, "digest"),
    "delete_sessions_of_user": _one(user_sessions.delete_sessions_of_user, "user_id"),
    "delete_sessions_of_key": _one(user_sessions.delete_sessions_of_key, "key_id"),
    "insert_link": _one(user_sessions.insert_link, *user_sessions.LINK),
    "find_link": _one(user_sessions.find_link, "digest"),
    "use_link": _one(user_sessions.use_link, "id", "used_at"),
    "newest_links": _one(user_sessions.newest_links, "key_id"),
    "expired_links": _one(user_sessions.expired_links, "now", "limit"),
    "delete_links": _one(user_sessions.delete_links, "ids"),
    "delete_links_of_key": _one(user_sessions.delete_links_of_key, "key_id"),
}
_ENVIRONMENT_ARCHIVES: dict[str, Statement] = {
    "find_environment_archive": _one(environment_archives.find_environment_archive, "environment"),
    "insert_environment_archive": _one(
        environment_archives.insert_environment_archive, *rows.EnvironmentArchive._fields
    ),
    "archived_environments": _one(environment_archives.archived_environments),
    "unused_archives": _one(environment_archives.unused_archives, "used_at", "limit"),
    "use_environment_archive": _one(
        environment_archives.use_environment_archive, "environment", "at", "used_at"
    ),
    "delete_environment_archive": _one(
        environment_archives.delete_environment_archive, "environment", "used_at"
    ),
    "environment_archive_digests": _one(environment_archives.environment_archive_digests),
}
_WORKERS: dict[str, Statement] = {
    "insert_worker": _one(workers.insert_worker, *rows.WorkerRow._fields),
    "refresh_worker": _one(
        workers.refresh_worker, "name", "kinds", "last_seen_at", "slots", "drains_at"
    ),
    "delete_worker": _one(workers.delete_worker, "name"),
    "delete_silent_workers": _one(workers.delete_silent_workers, "last_seen_at"),
    "list_workers": _one(workers.list_workers, "limit"),
}
_SCALING: dict[str, Statement] = {
    "list_scalers": _one(scaling.list_scalers),
    "find_scaler": _one(scaling.find_scaler, "name"),
    "insert_scaler": _one(scaling.insert_scaler, *rows.ScalerRow._fields),
    "lead": _one(scaling.lead, "name", "engine", "owner", "expires_at", "now"),
    "stop_leading": _one(scaling.stop_leading, "name", "owner", "now"),
    "record_scaler": _one(scaling.record_scaler, "name", "owner", "state"),
    "list_blocks": _one(scaling.list_blocks, "scaler", "limit"),
    "live_blocks": _one(scaling.live_blocks, "scaler"),
    "insert_block": _one(scaling.insert_block, *rows.BlockRow._fields),
    "change_block": _one(scaling.change_block, *scaling.CHANGED),
    "register_block": _one(scaling.register_block, "block", "now"),
    "leave_block": _one(scaling.leave_block, "name", "now"),
    "delete_blocks": _one(scaling.delete_blocks, "scaler", "finished_at"),
    "backlog": _one(scaling.backlog, "pool", "timeout_ms_max"),
    "count_by_owner": _one(scaling.count_by_owner, "pool"),
}
_AGENT_JOBS: dict[str, Statement] = {
    "insert_agent_job": _one(agent_jobs.insert_agent_job, *rows.AgentJobRow._fields),
    "record_agent_job": _one(agent_jobs.record_agent_job, "job_id", "facts", "reported_at"),
    "find_agent_job": _one(agent_jobs.find_agent_job, "job_id"),
    "list_agent_jobs": _one(agent_jobs.list_agent_jobs, *_PAGE),
    "list_agent_job_versions": _one(agent_jobs.list_agent_job_versions, "id", "limit"),
    "list_waiting_agent_jobs": _one(agent_jobs.list_waiting_agent_jobs, "workspace_id", "limit"),
    "held_agent_jobs": _one(agent_jobs.held_agent_jobs),
    "stale_agent_jobs": _one(agent_jobs.stale_agent_jobs, "seen_at", "now", "limit"),
    "due_agent_jobs": _one(agent_jobs.due_agent_jobs, "now", "limit"),
    "delete_agent_jobs": Statement(agent_jobs.delete_agent_jobs, _fields(rows.JobRef)),
    "insert_agent_pool": _one(agent_jobs.insert_agent_pool, *rows.AgentPoolRow._fields),
    "find_agent_pool": _one(agent_jobs.find_agent_pool, "name"),
    "waiting_agent_pools": _one(agent_jobs.waiting_agent_pools),
    "insert_hosts": Statement(agent_jobs.insert_hosts, rows.HostRow._fields),
    "change_hosts": Statement(agent_jobs.change_hosts, rows.HostRow._fields),
    "list_hosts": _one(agent_jobs.list_hosts, "limit"),
    "delete_silent_hosts": _one(agent_jobs.delete_silent_hosts, "seen_at"),
}
_AGENTS: dict[str, Statement] = {
    "insert_agent": _one(agents.insert_agent, *rows.AgentRow._fields),
    "count_agents": _one(agents.count_agents),
    "find_agent": _one(agents.find_agent, "name"),
    "find_agent_by_key": _one(agents.find_agent_by_key, "key_digest"),
    "list_agents": _one(agents.list_agents, "limit"),
    "enrol_agent_again": _one(agents.enrol_agent_again, *agents.ENROLLED),
    "replace_agent_key": _one(agents.replace_agent_key, *agents.REPLACED),
    "trade_agent_code": _one(agents.trade_agent_code, "code_digest", "key_digest", "now"),
    "revoke_agent": _one(agents.revoke_agent, "name", "revoked_at"),
    "record_agent_keys": _one(agents.record_agent_keys, "digests", "last_used_at"),
    "record_old_agent_keys": _one(agents.record_old_agent_keys, "digests", "last_used_at"),
}
_QUEUE_PAUSES: dict[str, Statement] = {
    "list_queue_pauses": _one(queue_pauses.list_queue_pauses),
    "insert_queue_pause": _one(queue_pauses.insert_queue_pause, *rows.QueuePauseRow._fields),
    "change_queue_pause": _one(queue_pauses.change_queue_pause, "scope", "reason", "paused_by"),
    "delete_queue_pause": _one(queue_pauses.delete_queue_pause, "scope"),
    "delete_pauses_of_gone_workers": _one(queue_pauses.delete_pauses_of_gone_workers),
}
_READS: dict[str, Statement] = {
    "read_job": _one(reads.read_job, *_IN_WORKSPACE),
    "read_payload": _one(reads.read_payload, *_IN_WORKSPACE),
    "read_result": _one(reads.read_result, *_IN_WORKSPACE),
    "read_artifacts": _one(reads.read_artifacts, *_IN_WORKSPACE),
    "read_events": _one(reads.read_events, *_IN_WORKSPACE, "seq", "limit"),
    "read_output": _one(output.read_output, *_IN_WORKSPACE, "seq", "limit"),
    "read_history": _one(reads.read_history, *_IN_WORKSPACE),
    "count_ahead": _one(reads.count_ahead, "workspace_id", "pool", "rank", "id", "limit"),
    "count_lane": _one(reads.count_lane, *rows.Lane._fields, "limit"),
    "workspace_ids": _one(reads.workspace_ids),
    "known_jobs": _one(reads.known_jobs, "ids"),
    "list_leases": _one(reads.list_leases, "limit"),
    "find_workspace_of_job": _one(reads.find_workspace_of_job, "id"),
    "count_by_status": _one(job_counts.count_by_status),
    "sum_counters": _one(job_counts.sum_counters, "workspace_id"),
    "insert_counters": Statement(job_counts.insert_counters, job_counts.COUNTER),
    "add_to_counters": Statement(job_counts.add_to_counters, job_counts.COUNTER),
    "read_facets": Statement(job_counts.read_facets, _fields(rows.JobRef)),
    "delete_counters": _one(job_counts.delete_counters),
    "count_anew": _one(job_counts.count_anew),
    "old_jobs": _one(sweeps.old_jobs, "workspace_id", "id", "finished_at", "first_id", "limit"),
}
STATEMENTS = {
    **_JOBS,
    **_READS,
    **_CATALOGUE,
    **_BUILDS,
    **_DIRECTORY,
    **_USER_SESSIONS,
    **_WORKERS,
    **_ENVIRONMENT_ARCHIVES,
    **_SCALING,
    **_AGENT_JOBS,
    **_AGENTS,
    **_QUEUE_PAUSES,
}
