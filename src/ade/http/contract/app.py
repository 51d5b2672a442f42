"""The app of the worker contract: its routes, its errors, and the middleware of the main app."""

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from ade import __version__
from ade.app.agent_environments import AgentEnvironments
from ade.app.agent_inputs import AgentInputs
from ade.app.agent_leases import AgentLeases
from ade.app.agent_uploads import AgentUploads
from ade.app.attempt_proofs import AttemptProofs
from ade.app.simulations import Simulations
from ade.domain.errors import AdeError
from ade.environments.shared import SharedEnvironments
from ade.http.access_log import AccessLog
from ade.http.contract.agent_files import AgentFiles, agent_file_routes
from ade.http.contract.agent_jobs import agent_job_routes
from ade.http.contract.agent_output import agent_output_routes
from ade.http.contract.context import ContractContext
from ade.http.contract.enrolment import enrolment_routes
from ade.http.contract.errors import answer_error, detail_response
from ade.http.contract.hosts import host_routes
from ade.http.contract.job_control import job_control_routes
from ade.http.contract.job_files import job_file_routes
from ade.http.contract.jobs import job_routes
from ade.http.contract.simulations import simulation_routes
from ade.http.contract.worker import WorkerCalls, worker_routes
from ade.http.middleware import RequestMiddleware


def contract_app(context: ContractContext, access_log: AccessLog | None = None) -> FastAPI:
    """Make the app of the worker contract; `state.fast_routes` may be called without it."""
    app = FastAPI(
        title="ADE worker contract",
        version=__version__,
        openapi_url="/api/agent/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    calls = WorkerCalls(context)
    app.state.fast_routes = calls.routes()
    kernel, catalogue = context.kernel, context.catalogue
    proofs = AttemptProofs(context.directory, kernel.store.clock)
    uploads = AgentUploads(catalogue, context.blobs, proofs, context.settings, kernel.store.clock)
    leases = AgentLeases(kernel, context.settings.jobs_dir, uploads)
    inputs = AgentInputs(kernel, catalogue, proofs)
    shared = SharedEnvironments(catalogue.environments, context.blobs, context.settings)
    environments = AgentEnvironments(shared, inputs, uploads, proofs)
    files = AgentFiles(leases, inputs, uploads, environments, proofs)
    simulations = Simulations(context.settings, context.job_requests, context.shared_folder)
    for router in (
        job_routes(context),
        simulation_routes(context, simulations),
        job_file_routes(context),
        job_control_routes(context),
        worker_routes(calls),
        host_routes(context),
        agent_output_routes(context),
        enrolment_routes(context.agents, context.enrolled, context.wrong_keys),
        agent_job_routes(leases, context.callers),
        agent_file_routes(files, context.callers, context.blobs),
    ):
        app.include_router(router)
    for kind in (AdeError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, answer_error)
    app.add_middleware(RequestMiddleware, access_log=access_log, answer=detail_response)
    return app
