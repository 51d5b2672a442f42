"""How a job is shown to the client that submitted it: as a job, a run, a build or a retry."""

import json

from ade.domain.job import WAITING, Status
from ade.http.auth import Authorization
from ade.http.context import AppContext
from ade.http.schemas.builds import build_body, build_path
from ade.http.schemas.jobs import (
    Retried,
    Waiting,
    job_body,
    job_path,
    read_queue_facts,
    read_waiting,
    waiting_body,
)
from ade.http.schemas.results import result_body
from ade.http.schemas.runs import Run, run_body, run_path
from ade.stages.json_text import json_text
from ade.stages.submit.model import Accepted
from ade.store.port import Reading
from ade.store.rows import BuildVersion, JobRef, JobRow


class JobView:
    """Show an accepted job as a job."""

    def __init__(self, context: AppContext, auth: Authorization) -> None:
        self._context = context
        self._slug = auth.workspace.slug

    def location(self, accepted: Accepted) -> str:
        """Return the path of the job."""
        return job_path(self._slug, accepted.job.id)

    def body(self, accepted: Accepted) -> str:
        """Write the job."""
        body = job_body(
            accepted.job,
            self._slug,
            deduplicated=accepted.deduplicated,
            safe_mode=self._context.safe_mode,
        )
        return json_text(body)

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the job."""
        return self.body(accepted)

    async def result(self, job: JobRow) -> str:
        """Write the result envelope of an ended job."""
        ref = JobRef(job.workspace_id, job.id)
        stored = await self._context.kernel.read(lambda reading: reading.read_result(ref))
        version = self._context.job_requests.env_version(job.kind)
        return json.dumps(result_body(job, stored, version))


class RunView(JobView):
    """Show an accepted job as a run, with its version and the build that it waits for."""

    def location(self, accepted: Accepted) -> str:
        """Return the path of the run."""
        return run_path(self._slug, accepted.job.id)

    def body(self, accepted: Accepted) -> str:
        """Write the run, with its build as it was when the run was submitted."""
        assert accepted.ensured is not None
        version, build, _ = accepted.ensured
        named = BuildVersion(version.id, version.sequence, version.digest)
        job, waiting = accepted.job, None
        if Status(job.status) in WAITING:
            waiting = waiting_body(job, safe_mode=self._context.safe_mode)
        return json.dumps(run_body(job, self._slug, build, named, waiting))

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the run, with its build as it is now."""
        return json.dumps(await current_run(self._context, accepted.job, self._slug))


async def current_run(context: AppContext, job: JobRow, slug: str) -> Run:
    """Show a run with its version, its build as it is now, and why it waits if it does."""
    (run,) = await current_runs(context, [job], slug, counted=True)
    return run


async def current_runs(
    context: AppContext, jobs: list[JobRow], slug: str, *, counted: bool = False
) -> list[Run]:
    """Show runs of one workspace; `counted` also counts how many jobs are before each."""
    if not jobs:
        return []

    def waits(reading: Reading) -> list[Waiting | None]:
        if counted:
            return [
                read_waiting(
                    reading, job, safe_mode=context.safe_mode, agent_waits=context.agent_waits
                )
                for job in jobs
            ]
        if not any(Status(job.status) in WAITING for job in jobs):
            return [None] * len(jobs)
        facts = read_queue_facts(reading)
        return [
            waiting_body(job, safe_mode=context.safe_mode, facts=facts)
            if Status(job.status) in WAITING
            else None
            for job in jobs
        ]

    waiting = await context.kernel.read(waits)
    build_ids = [job.build_id for job in jobs]
    builds = await context.catalogue.builds_of_runs(jobs[0].workspace_id, build_ids)
    runs = []
    for job, why in zip(jobs, waiting, strict=True):
        build, version = builds.get(str(job.build_id), (None, None))
        runs.append(run_body(job, slug, build, version, why))
    return runs


class BuildView(JobView):
    """Show the accepted job of an activation as the build that it makes."""

    def location(self, accepted: Accepted) -> str:
        """Return the path of the build."""
        if accepted.ensured is not None:
            return build_path(self._slug, accepted.ensured.build.id)
        assert accepted.replayed is not None
        return str(json.loads(accepted.replayed[1])["links"]["self"])

    def body(self, accepted: Accepted) -> str:
        """Write the build as it was when the activation was accepted."""
        assert accepted.ensured is not None
        return json.dumps(build_body(accepted.ensured.build, self._slug))

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the build as it is now."""
        assert accepted.ensured is not None
        build = accepted.ensured.build
        now = await self._context.catalogue.find_build(build.workspace_id, build.id)
        return json.dumps(build_body(now, self._slug))


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
