"""What all routes stand on."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.app.job_requests import JobRequests
from ade.app.run_requests import RunRequests
from ade.app.submission import SubmissionService
from ade.domain.errors import NotFound, Unavailable
from ade.domain.ids import is_uuid
from ade.domain.outcome import Outcome
from ade.http.auth import Gatekeeper, Grant
from ade.kernel import Kernel
from ade.settings import Settings
from ade.storage import Blobs
from ade.store.rows import JobRef, JobRow

NO_JOB = "There is no such job in this workspace."


class InlineTasks(Protocol):
    """Run something short on strangers' files, where jobs run and never in this process."""

    async def run(
        self,
        workspace_id: str,
        entry: str,
        inputs: dict[str, Any],
        files: Mapping[str, Path],
        environment: str | None = None,
    ) -> Outcome:
        """Run an entry and wait for what comes of it."""
        ...


@dataclass(frozen=True, slots=True)
class Door:
    """Hold the kernel and what stands between it and the clients."""

    kernel: Kernel
    directory: Directory
    library: Catalogue
    blobs: Blobs
    settings: Settings
    gatekeeper: Gatekeeper
    job_requests: JobRequests
    run_requests: RunRequests
    submissions: SubmissionService
    inline_tasks: InlineTasks | None = None

    @property
    def safe_mode(self) -> bool:
        """Tell whether nothing may be run."""
        return self.kernel.settings.safe_mode

    @property
    def require_inline_tasks(self) -> InlineTasks:
        """Return what runs inline tasks, or raise that nothing does here."""
        if self.inline_tasks is None:
            why = "ADE_SAFE_MODE is enabled" if self.safe_mode else "it was started to run no jobs"
            raise Unavailable(
                f"This server process opens no strangers' files: {why}. Ask one that runs jobs."
            )
        return self.inline_tasks

    async def job(self, grant: Grant, job_id: str) -> JobRow:
        """Read a job of the workspace, or raise NotFound."""
        ref = job_ref(grant, job_id)
        found = await self.kernel.read(lambda reading: reading.read_job(ref))
        if found is None:
            raise NotFound(NO_JOB)
        return found


def job_ref(grant: Grant, job_id: str) -> JobRef:
    """Name a job of the workspace; what is no identifier names nothing."""
    if not is_uuid(job_id):
        raise NotFound(NO_JOB)
    return JobRef(grant.workspace.id, job_id.lower())
