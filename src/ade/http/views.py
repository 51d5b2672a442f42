"""How a job is shown to the client that submitted it: as a job, as a run, or as a retry."""

import json

from ade.domain.job import Status
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.schemas.jobs import Retried, job_body, job_path
from ade.http.schemas.results import result_body
from ade.http.schemas.runs import run_body, run_path
from ade.stages.submit.model import Accepted
from ade.store.rows import Build, JobRef, JobRow


class JobView:
    """Show an accepted job as a job."""

    def __init__(self, context: AppContext, auth: Authorization) -> None:
        self._door = context
        self._slug = auth.workspace.slug

    def location(self, job: JobRow) -> str:
        """Return the path of the job."""
        return job_path(self._slug, job.id)

    def body(self, accepted: Accepted) -> str:
        """Write the job."""
        body = job_body(
            accepted.job,
            self._slug,
            deduplicated=accepted.deduplicated,
            safe_mode=self._door.safe_mode,
        )
        return json.dumps(body)

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the job."""
        return self.body(accepted)

    async def result(self, job: JobRow) -> str:
        """Write the result envelope of an ended job."""
        ref = JobRef(job.workspace_id, job.id)
        stored = await self._door.kernel.read(lambda reading: reading.read_result(ref))
        version = self._door.job_requests.env_version(job.kind)
        return json.dumps(result_body(job, stored, version))


class RunView(JobView):
    """Show an accepted job as a run, with the build that it waits for."""

    def __init__(self, context: AppContext, auth: Authorization, build: Build) -> None:
        super().__init__(context, auth)
        self._build = build

    def location(self, job: JobRow) -> str:
        """Return the path of the run."""
        return run_path(self._slug, job.id)

    def body(self, accepted: Accepted) -> str:
        """Write the run, with its build as it was when the run was submitted."""
        return json.dumps(run_body(accepted.job, self._slug, self._build))

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the run, with its build as it is now."""
        job = accepted.job
        build = None
        if job.build_id is not None:
            build = await self._door.catalogue.find_build(job.workspace_id, job.build_id)
        return json.dumps(run_body(job, self._slug, build))


class RetryView(JobView):
    """Show an accepted job as the retry of an earlier one."""

    def __init__(
        self, context: AppContext, auth: Authorization, retry_of: str, attempt: int
    ) -> None:
        super().__init__(context, auth)
        self._retry_of = retry_of
        self._attempt = attempt

    def body(self, accepted: Accepted) -> str:
        """Write the new job's identity and status, and which job it retries."""
        job = accepted.job
        retry: Retried = {
            "job_id": job.id,
            "status": Status(job.status),
            "retry_of": self._retry_of,
            "attempt": self._attempt,
        }
        return json.dumps(retry)
