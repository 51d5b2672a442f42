"""What all routes stand on."""

from dataclasses import dataclass

from ade.artifacts import Blobs
from ade.domain.errors import NotFound
from ade.domain.ids import is_uuid
from ade.http.auth import Gatekeeper, Grant
from ade.http.intake import Intake
from ade.kernel import Kernel
from ade.settings import Settings
from ade.store.directory import Directory
from ade.store.library import Library
from ade.store.rows import JobRef, JobRow

NO_JOB = "There is no such job in this workspace."


@dataclass(frozen=True, slots=True)
class Door:
    """Hold the kernel and what stands between it and the clients."""

    kernel: Kernel
    directory: Directory
    library: Library
    blobs: Blobs
    settings: Settings
    gatekeeper: Gatekeeper
    intake: Intake

    @property
    def safe_mode(self) -> bool:
        """Tell whether nothing may be run."""
        return self.kernel.rules.safe_mode

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
