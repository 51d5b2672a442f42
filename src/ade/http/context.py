"""The app context: what every route uses."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ade.app.agent_output import AgentOutput
from ade.app.agent_waits import AgentWaits
from ade.app.build_requests import BuildRequests
from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.app.job_requests import JobRequests
from ade.app.run_requests import RunRequests
from ade.app.submission import SubmissionService
from ade.app.user_sessions import UserSessions
from ade.domain.errors import NotFound, Unavailable
from ade.domain.ids import is_uuid
from ade.domain.outcome import Outcome
from ade.http.auth import Authenticator, Authorization, Principal
from ade.http.fair_share import FairShare
from ade.http.public_address import PublicAddress
from ade.http.session_cookie import SessionCookie
from ade.kernel import Kernel
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import JobRef, JobRow

NO_JOB = "There is no such job in this workspace."


class InlineTasks(Protocol):
    """Run a short task on untrusted files in the sandbox, while a request waits for it."""

    async def run(
        self,
        workspace_id: str,
        entry: str,
        inputs: dict[str, Any],
        files: Mapping[str, Path],
        environment: str | None = None,
    ) -> Outcome:
        """Run an entry point and return its outcome."""
        ...


@dataclass(frozen=True, slots=True)
class AppContext:
    """Hold the kernel, the services over it, and the settings."""

    kernel: Kernel
    directory: Directory
    catalogue: Catalogue
    blobs: Blobs
    settings: Settings
    authenticator: Authenticator
    sessions: UserSessions
    address: PublicAddress
    cookie: SessionCookie
    job_requests: JobRequests
    run_requests: RunRequests
    build_requests: BuildRequests
    submissions: SubmissionService
    inline_shares: FairShare
    agent_output: AgentOutput
    inline_tasks: InlineTasks | None = None

    @property
    def safe_mode(self) -> bool:
        """Tell whether safe mode is on, so that nothing is run."""
        return self.kernel.settings.safe_mode

    @property
    def agent_waits(self) -> AgentWaits:
        """Return what says why jobs wait for agents."""
        kernel, available = self.kernel, self.settings.available_hosts
        return AgentWaits(kernel.settings.staleness, kernel.store.clock, available)

    @property
    def require_inline_tasks(self) -> InlineTasks:
        """Return what runs inline tasks, or raise Unavailable if this server runs none."""
        if self.inline_tasks is None:
            why = "ADE_SAFE_MODE is enabled" if self.safe_mode else "it was started to run no jobs"
            raise Unavailable(
                "This server does not run jobs, so it cannot preview documents or check drafts:"
                f" {why}."
            )
        return self.inline_tasks

    async def end_own_sessions(self, principal: Principal) -> None:
        """End all sessions that a principal may call its own.

        For an operator these are the sessions of the user; for a key with a workspace, those that
        began with the same key: it must not sign out a browser that may do more.
        """
        if principal.operator:
            await self.sessions.end_all_of_user(principal.user_id)
        else:
            await self.sessions.end_all_of_key(principal.holder.key_id)

    async def job(self, auth: Authorization, job_id: str) -> JobRow:
        """Read a job of the workspace, or raise NotFound."""
        ref = job_ref(auth, job_id)
        found = await self.kernel.read(lambda reading: reading.read_job(ref))
        if found is None:
            raise NotFound(NO_JOB)
        return found


def job_ref(auth: Authorization, job_id: str) -> JobRef:
    """Refer to a job of the workspace; what is not an identifier refers to none."""
    if not is_uuid(job_id):
        raise NotFound(NO_JOB)
    return JobRef(auth.workspace.id, job_id.lower())
