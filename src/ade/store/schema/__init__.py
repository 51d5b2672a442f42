"""The tables, with constraints that refuse rows which cannot be true.

Conventions: every `_at` is microseconds since the epoch, UTC, in a BIGINT, so that the three
databases compare times alike; flags are 0 or 1 for the same reason; JSON is text that the database
never looks into. `workspace_id` is the first column of every key, or folded into it, so that
sharding by workspace stays possible. The logs of a job (events, output) carry no foreign key: they
are written in a transaction that has the job's row and deleted in the one that deletes it, and the
check would cost as much as the insert.
"""

from ade.store.schema.agents import (
    agent_jobs,
    agent_pools,
    agents,
    hosts,
)
from ade.store.schema.catalogue import (
    activations,
    builds,
    config_versions,
    configurations,
    documents,
    draft_files,
    environment_archives,
)
from ade.store.schema.columns import (
    Digest,
    Id,
    Json,
    Name,
    Word,
    metadata,
)
from ade.store.schema.directory import (
    api_keys,
    login_links,
    members,
    secrets,
    sessions,
    users,
    workspaces,
)
from ade.store.schema.jobs import (
    artifacts,
    events,
    executions,
    gates,
    holds_its_lane,
    idempotency_keys,
    is_eligible,
    is_held,
    is_queued,
    is_running,
    job_counts,
    jobs,
    output_batches,
    requests,
)
from ade.store.schema.workers import (
    queue_pauses,
    scale_blocks,
    scalers,
    workers,
)

__all__ = [
    "Digest",
    "Id",
    "Json",
    "Name",
    "Word",
    "activations",
    "agent_jobs",
    "agent_pools",
    "agents",
    "api_keys",
    "artifacts",
    "builds",
    "config_versions",
    "configurations",
    "documents",
    "draft_files",
    "environment_archives",
    "events",
    "executions",
    "gates",
    "holds_its_lane",
    "hosts",
    "idempotency_keys",
    "is_eligible",
    "is_held",
    "is_queued",
    "is_running",
    "job_counts",
    "jobs",
    "login_links",
    "members",
    "metadata",
    "output_batches",
    "queue_pauses",
    "requests",
    "scale_blocks",
    "scalers",
    "secrets",
    "sessions",
    "users",
    "workers",
    "workspaces",
]
