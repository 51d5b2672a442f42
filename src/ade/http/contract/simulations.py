"""`POST /run-simulation`: submit a container job by the configuration of an experiment."""

import json

from fastapi import APIRouter, Request, Response
from pydantic import TypeAdapter

from ade.app.job_requests import Caller
from ade.app.simulations import INLINE_CONFIG_BYTES_MAX, SimulationRequest, Simulations
from ade.app.submission import ClientRequest, PreparedSubmission
from ade.http.auth import Role
from ade.http.body import parse, read_body
from ade.http.contract.context import ContractContext, user_of
from ade.http.openapi import headers_taken
from ade.http.preferences import preferences_of
from ade.http.responses import RawResponse
from ade.stages.agents.report import status_of
from ade.stages.submit.model import Accepted
from ade.store.rows import JobRef, JobRow

# JSON takes up to six bytes for a character of the configuration.
BODY_BYTES_MAX = 6 * INLINE_CONFIG_BYTES_MAX + 256 * 1024
IDEMPOTENCY = "a key for this request: the same key gives the same response for a day"
WAIT = "`wait=n`: answer when the job has ended, after at most n seconds (at most 60)"
_REQUEST = TypeAdapter(SimulationRequest)


class SimulationView:
    """Show an accepted job as the contract answers its submission."""

    def __init__(self, host: str | None, job_name: str) -> None:
        self._host = host
        self._job_name = job_name

    def location(self, accepted: Accepted) -> str:
        """Return the path of the job's status."""
        return f"/status/{accepted.job.id}"

    def body(self, accepted: Accepted) -> str:
        """Write the id and the names of the job, and its status."""
        shown = {
            "job_id": accepted.job.id,
            "status": status_of(accepted.job, {}).value,
            "host": self._host,
            "job_name": self._job_name,
        }
        return json.dumps(shown)

    async def body_after_wait(self, accepted: Accepted) -> str:
        """Write the same, with the status now."""
        return self.body(accepted)

    async def result(self, job: JobRow) -> str:
        """Write nothing: a result has a path of its own."""
        return "null"


def simulation_routes(context: ContractContext, simulations: Simulations) -> APIRouter:
    """Make the route."""
    router = APIRouter(tags=["jobs"])

    @router.post(
        "/run-simulation",
        openapi_extra={"parameters": headers_taken(Idempotency_Key=IDEMPOTENCY, Prefer=WAIT)},
    )
    async def run_simulation(request: Request) -> Response:
        """Submit a job; 200 with its id, status, host and name."""
        caller = await context.callers.caller(request.scope)
        workspace = await context.workspace(caller, Role.EDITOR)
        body = await read_body(request.scope, request.receive, BODY_BYTES_MAX)
        wanted: SimulationRequest = parse(body, _REQUEST)
        preferences = preferences_of(request.scope)
        submitter = Caller(workspace.id, user_of(caller))
        made_files: list[str] = []

        async def prepare() -> PreparedSubmission:
            found = await simulations.prepare(wanted, submitter)
            if found.made_file is not None:
                made_files.append(found.made_file)
            submission = found.submission
            return PreparedSubmission(
                submission, SimulationView(wanted.target_host, submission.job_name)
            )

        sent = ClientRequest(
            submitter,
            "POST run-simulation",
            body,
            preferences.idempotency_key,
            preferences.wait_seconds,
        )
        answer = None
        try:
            answer = await context.submissions.submit(sent, prepare)
        finally:
            if answer is None or answer.is_replayed:
                for path in made_files:
                    await simulations.discard(path)
        if not answer.is_replayed:
            job_id = answer.location.rpartition("/")[2]
            await context.mirror.refresh(JobRef(workspace.id, job_id))
        location = (b"location", answer.location.encode())
        replayed = ((b"idempotency-replayed", b"true"),) if answer.is_replayed else ()
        return RawResponse(200, answer.body.encode(), (location, *replayed)).as_response()

    return router
