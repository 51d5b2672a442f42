"""The context of the worker contract: what its routes use, and which jobs a caller may see."""

import json
from dataclasses import dataclass
from typing import Any

from ade.app.agent_hosts import AgentHosts
from ade.app.agent_output import AgentOutput
from ade.app.agent_work import AgentWork
from ade.app.agents import Agents
from ade.app.attempt_tokens import AttemptTokens
from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.app.enrolled_agents import EnrolledAgents
from ade.app.job_mirror import JobMirror
from ade.app.job_requests import JobRequests
from ade.app.submission import SubmissionService
from ade.domain.errors import Forbidden, NotFound
from ade.domain.ids import is_uuid
from ade.http.auth import Role
from ade.http.contract.callers import Callers, ContractCaller
from ade.http.wrong_keys import WrongKeys
from ade.kernel import Kernel
from ade.kinds import Kinds
from ade.settings import Settings
from ade.stages.agents.dispatch import EARLIER_WORKERS
from ade.storage import Blobs
from ade.storage.shared_folder import SharedFolder
from ade.store.port import Reading
from ade.store.rows import AgentJob, JobRef, Workspace

NO_JOB = "There is no such job."
NETWORK_USER = "network"
DEFAULT_WORKSPACE = "default"


@dataclass(frozen=True, slots=True)
class ContractContext:
    """Hold the kernel, the services over it, and what agents ask for."""

    kernel: Kernel
    directory: Directory
    callers: Callers
    settings: Settings
    kinds: Kinds
    job_requests: JobRequests
    submissions: SubmissionService
    blobs: Blobs
    agents: Agents
    enrolled: EnrolledAgents
    wrong_keys: WrongKeys
    hosts: AgentHosts
    work: AgentWork
    tokens: AttemptTokens
    catalogue: Catalogue
    shared_folder: SharedFolder
    mirror: JobMirror
    output: AgentOutput

    async def workspace(self, caller: ContractCaller, needed: Role = Role.VIEWER) -> Workspace:
        """Return the workspace that a caller acts in: that of its key, else `default`."""
        held = caller.user.holder if caller.user is not None else None
        name = (held and held.workspace_id) or DEFAULT_WORKSPACE
        found = await self.directory.find_workspace(name)
        if found is None:
            raise NotFound("There is no such workspace.")
        if role_in(caller, found.id, is_default=True) < needed:
            raise Forbidden(f"This needs the role {needed.label} in workspace {found.slug}.")
        return found

    async def job(
        self, caller: ContractCaller, job_id: str, needed: Role = Role.VIEWER
    ) -> AgentJob:
        """Find a job that a caller may see, or raise NotFound; Forbidden if it may not change it.

        An agent sees the jobs that it holds or held. A trusted network sees all jobs, and may
        change those of the workspace `default`.
        """
        found = await self.kernel.read(lambda reading: find_job(reading, job_id))
        if found is None:
            raise NotFound(NO_JOB)
        if caller.name is not None:
            if caller.name not in workers_of(found):
                raise NotFound(NO_JOB)
            role = Role.VIEWER
        else:
            default = await self.directory.find_workspace(DEFAULT_WORKSPACE)
            is_default = default is not None and default.id == found.job.workspace_id
            role = role_in(caller, found.job.workspace_id, is_default=is_default)
            if role is Role.NONE:
                raise NotFound(NO_JOB)
        if role < needed:
            raise Forbidden(f"This needs the role {needed.label}.")
        return found


def user_of(caller: ContractCaller) -> str:
    """Name who acts, as events record it: a user, or a trusted network."""
    return caller.user.user_id if caller.user is not None else NETWORK_USER


def role_in(caller: ContractCaller, workspace_id: str, *, is_default: bool) -> Role:
    """Return what a caller may do in a workspace."""
    if caller.name is not None:
        return Role.NONE
    if caller.user is not None:
        return caller.user.role_in(workspace_id)
    return Role.EDITOR if is_default else Role.VIEWER


def find_job(reading: Reading, job_id: str) -> AgentJob | None:
    """Find a job of an agent by its id alone."""
    if not is_uuid(job_id):
        return None
    known = reading.agent_jobs.find(job_id.lower())
    if known is None:
        return None
    job = reading.read_job(JobRef(known.workspace_id, known.job_id))
    return None if job is None else AgentJob(job, known)


def facts_of(found: AgentJob) -> dict[str, Any]:
    """Return what was reported of a job."""
    facts: dict[str, Any] = json.loads(found.known.facts)
    return facts


def workers_of(found: AgentJob) -> set[str]:
    """Name the workers that hold or held a job."""
    facts = facts_of(found)
    named = {*facts.get(EARLIER_WORKERS, ()), facts.get("worker_id"), found.job.lease_owner}
    return {name for name in named if name is not None}
