"""What a client asks for, and what it gets: the types that all steps of `submit` share."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ade.domain.agent_pool import AgentPool
from ade.domain.errors import AdeError
from ade.domain.job import LOCAL_POOL, Priority
from ade.domain.limits import Limits
from ade.stages.builds import EnsuredBuild, RequiredBuild
from ade.store.rows import JobRow


class Accepted(NamedTuple):
    """Hold the job that a submission led to: a new one, an earlier equal one, or a replayed one.

    `replayed` is the recorded response (status, body) to an earlier request with the same
    Idempotency-Key. `ensured` is what a run or an activation depends on.
    """

    job: JobRow
    deduplicated: bool = False
    replayed: tuple[int, str] | None = None
    ensured: EnsuredBuild | None = None


Answer = Accepted | AdeError


@dataclass(frozen=True, slots=True)
class Idempotency:
    """Hold the Idempotency-Key of a request, and the function that writes the response to it.

    `answer` is None for a request that waits for its job: the response is recorded when it is made.
    """

    principal: str
    endpoint: str
    key: str
    body_digest: str
    answer: Callable[[Accepted], tuple[int, str]] | None


class Submission(NamedTuple):
    """Hold a job that someone asks for."""

    workspace_id: str
    kind: str
    payload: str
    limits: Limits
    submitted_by: str
    pool: str = LOCAL_POOL
    priority: Priority = Priority.NORMAL
    target_id: str | None = None
    not_before: int | None = None
    execution_key: str | None = None
    dedupe: bool = True
    reuse_failed: bool = False
    rerun_of: str | None = None
    configuration_id: str | None = None
    document_id: str | None = None
    build_id: str | None = None
    retries: int = 2
    # For a job that agents run: what it asks of them, and the name that people gave it.
    agent_pool: AgentPool | None = None
    job_name: str = ""
    idempotency: Idempotency | None = None
    # The version and the build that it depends on; they are found or made when it is accepted.
    required: RequiredBuild | None = None
