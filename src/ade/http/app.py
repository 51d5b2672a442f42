"""The HTTP app: every route over one kernel. It runs no jobs itself."""

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from ade import __version__
from ade.app.agent_hosts import AgentHosts
from ade.app.agent_output import AgentOutput
from ade.app.agent_work import AgentWork
from ade.app.attempt_tokens import AttemptTokens
from ade.app.build_requests import BuildRequests
from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.app.enrolled_agents import EnrolledAgents
from ade.app.job_mirror import JobMirror
from ade.app.job_requests import JobRequests
from ade.app.run_requests import RunRequests
from ade.app.submission import SubmissionService
from ade.domain.errors import AdeError
from ade.domain.session_rule import SessionRule
from ade.domain.units import MIB
from ade.http import openapi
from ade.http.access_log import AccessLog
from ade.http.auth import Authenticator
from ade.http.client_address import Networks
from ade.http.config_files import ConfigurationFiles
from ade.http.context import AppContext, InlineTasks
from ade.http.contract.agent_callers import AgentCallers
from ade.http.contract.app import contract_app
from ade.http.contract.context import ContractContext
from ade.http.fair_share import FairShare, Shares
from ade.http.fast_path import Application
from ade.http.health import Component, Health, Probe
from ade.http.middleware import RequestMiddleware, trace_id_in
from ade.http.problems import problem_response
from ade.http.public_address import PublicAddress
from ade.http.routes.agents import agent_routes
from ade.http.routes.artifacts import artifact_routes
from ade.http.routes.builds import activation_routes, build_routes
from ade.http.routes.configurations import configuration_routes
from ade.http.routes.documents import document_routes
from ade.http.routes.drafts import draft_routes
from ade.http.routes.health import health_routes
from ade.http.routes.job_actions import job_action_routes
from ade.http.routes.jobs import job_routes
from ade.http.routes.login import login_routes
from ade.http.routes.logs import log_routes
from ade.http.routes.members import member_routes
from ade.http.routes.operations import operation_routes
from ade.http.routes.operator_keys import operator_key_routes
from ade.http.routes.output import output_routes
from ade.http.routes.runs import run_routes
from ade.http.routes.schemas import schema_routes
from ade.http.routes.sessions import session_routes
from ade.http.routes.submissions import JobSubmissions, fast_routes, submission_routes
from ade.http.routes.targets import target_routes
from ade.http.routes.timeline import timeline_routes
from ade.http.routes.workspaces import workspace_routes
from ade.http.session_cookie import SessionCookie
from ade.http.sse import event_streams
from ade.http.wrong_keys import WrongKeys
from ade.kernel import Kernel
from ade.kinds import Kinds
from ade.settings import Settings
from ade.storage import Blobs
from ade.storage.attempt_logs import AttemptLogs
from ade.storage.shared_folder import SharedFolder

# Beyond any that may wait; those are shared among workspaces where they run.
INLINE_TASKS_MAX = 10_000


def create_app(
    kernel: Kernel,
    directory: Directory,
    settings: Settings,
    kinds: Kinds,
    *,
    catalogue: Catalogue,
    blobs: Blobs,
    shared_folder: SharedFolder | None = None,
    inline_tasks: InlineTasks | None = None,
    health_probes: Mapping[str, Probe] | None = None,
) -> Application:
    """Make the app over a kernel; the caller closes the parts that it passes.

    Without a `shared_folder` the output of containers is kept in the data folder.
    Without `inline_tasks` documents are not previewed and configurations not checked.
    `health_probes` are the parts of `/api/v1/health` that only the caller knows: worker pool,
    sweeper, isolation.
    """
    job_requests = JobRequests(settings, kinds)
    build_requests = BuildRequests(catalogue, blobs, settings)
    run_requests = RunRequests(catalogue, settings, job_requests, build_requests)
    sessions = directory.user_sessions(
        SessionRule(settings.session_idle_minutes * 60, settings.session_max_hours * 3600)
    )
    proxies = Networks(settings.trusted_proxies)
    address = PublicAddress(settings.public_url, proxies)
    cookie = SessionCookie(address, settings.session_max_hours * 3600)
    wrong_keys = WrongKeys(settings.wrong_keys_per_minute, proxies)
    access_log = AccessLog(proxies) if settings.access_log else None
    per_key = settings.inline_tasks_per_key
    shares = Shares(INLINE_TASKS_MAX, INLINE_TASKS_MAX, per_key)
    tokens = AttemptTokens(directory)
    folder = shared_folder or SharedFolder(settings.shared_fallback_dir)
    mirror = JobMirror(kernel, folder)
    probes = {"shared-folder": _folder_probe(mirror), **(health_probes or {})}
    logs = AttemptLogs(folder.root, settings.agent_output_max_mb * MIB)
    agent_output = AgentOutput(kernel, tokens, logs)
    context = AppContext(
        kernel=kernel,
        directory=directory,
        catalogue=catalogue,
        blobs=blobs,
        settings=settings,
        authenticator=Authenticator(
            directory, sessions=sessions, cookie=cookie, on_wrong_key=wrong_keys.count
        ),
        sessions=sessions,
        address=address,
        cookie=cookie,
        job_requests=job_requests,
        run_requests=run_requests,
        build_requests=build_requests,
        submissions=SubmissionService(kernel, job_requests, run_requests, build_requests),
        agent_output=agent_output,
        inline_shares=FairShare("previews and checks", shares),
        inline_tasks=inline_tasks,
    )
    enrolled = EnrolledAgents(directory.agents(), kernel.store.clock)
    app = Application(
        title="ADE",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    submissions = JobSubmissions(context)
    streams = event_streams(settings)
    config_files = ConfigurationFiles(blobs)
    for router in (
        submission_routes(submissions),
        job_routes(context),
        log_routes(context, streams),
        output_routes(context, streams),
        timeline_routes(context, streams),
        job_action_routes(context),
        run_routes(context),
        target_routes(context, submissions),
        artifact_routes(context),
        document_routes(context),
        configuration_routes(context, config_files),
        draft_routes(context, config_files),
        build_routes(context),
        activation_routes(context),
        workspace_routes(context),
        member_routes(context),
        operator_key_routes(context),
        operation_routes(context),
        session_routes(context),
        schema_routes(kinds),
        health_routes(context, Health(kernel, settings, blobs, probes)),
        login_routes(context),
        agent_routes(context, directory.agents(), enrolled),
    ):
        app.include_router(router)
    for kind in (AdeError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _problem)
    app.add_middleware(RequestMiddleware, access_log=access_log)
    app.access_log = access_log
    app.fast_routes = fast_routes(submissions)
    hosts = AgentHosts(kernel)
    work = AgentWork(kernel, hosts)
    app.contract = contract_app(
        ContractContext(
            kernel=kernel,
            directory=directory,
            callers=AgentCallers(context.authenticator, enrolled, settings, wrong_keys),
            settings=settings,
            kinds=kinds,
            job_requests=job_requests,
            submissions=context.submissions,
            blobs=blobs,
            agents=directory.agents(),
            enrolled=enrolled,
            wrong_keys=wrong_keys,
            hosts=hosts,
            work=work,
            tokens=tokens,
            catalogue=catalogue,
            shared_folder=folder,
            mirror=mirror,
            output=agent_output,
        ),
        access_log,
    )
    app.mirror = mirror

    def drain() -> None:
        context.submissions.drain()
        work.drain()

    app.drain = drain
    openapi.install(app)
    app.state.context = context
    app.state.agent_hosts = hosts
    return app


def _folder_probe(mirror: JobMirror) -> Probe:
    """Check the shared folder by what became of writing to it."""

    def shared_folder() -> Component:
        if mirror.trouble is None:
            return Component("ok", f"{mirror.folder.root} holds what the database says.")
        return Component("degraded", f"{mirror.folder.root} is behind: {mirror.trouble}")

    return shared_folder


async def _problem(request: Request, error: Exception) -> Response:
    response = problem_response(error, trace_id_in(request.scope)).as_response()
    if response.status_code == 405:  # the router knows the methods of one route only
        response.headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    return response


def _methods(app: FastAPI, path: str) -> list[str]:
    """List the methods of a path."""
    return sorted(
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    )
