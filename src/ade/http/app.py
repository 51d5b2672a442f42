"""The HTTP server's app: every route over one kernel. It runs no jobs itself."""

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from ade import __version__
from ade.app.catalogue import Catalogue
from ade.app.directory import Directory
from ade.app.job_requests import JobRequests
from ade.app.run_requests import RunRequests
from ade.app.submission import SubmissionService
from ade.domain.errors import AdeError
from ade.http import openapi
from ade.http.auth import Gatekeeper
from ade.http.door import Door, InlineTasks
from ade.http.edge import Edge, trace_id_in
from ade.http.health import Health, Probe
from ade.http.hot import HotApp
from ade.http.packages import Packages
from ade.http.problems import reply_to
from ade.http.routes.artifacts import artifact_routes
from ade.http.routes.builds import activation_routes, build_routes
from ade.http.routes.configurations import configuration_routes
from ade.http.routes.documents import document_routes
from ade.http.routes.drafts import draft_routes
from ade.http.routes.entrance import entrance_routes
from ade.http.routes.health import health_routes
from ade.http.routes.jobs import job_routes
from ade.http.routes.logs import log_routes
from ade.http.routes.people import people_routes
from ade.http.routes.runs import run_routes
from ade.http.routes.schemas import schema_routes
from ade.http.routes.submissions import hot_routes, submission_routes
from ade.http.routes.targets import target_routes
from ade.http.routes.verbs import verb_routes
from ade.http.routes.workspaces import workspace_routes
from ade.http.submissions import JobSubmissions
from ade.kernel import Kernel
from ade.kinds import Kinds
from ade.settings import Settings
from ade.storage import Blobs


def create_app(
    kernel: Kernel,
    directory: Directory,
    settings: Settings,
    kinds: Kinds,
    *,
    library: Catalogue,
    blobs: Blobs,
    inline_tasks: InlineTasks | None = None,
    health_probes: Mapping[str, Probe] | None = None,
) -> HotApp:
    """Make the app over a kernel; whoever gives the parts closes them.

    Without `inline_tasks` documents are not previewed and configurations not checked.
    `health_probes` are the parts of `/api/v1/health` that only the caller knows: worker pool,
    sweeper, isolation.
    """
    job_requests = JobRequests(settings, kinds)
    run_requests = RunRequests(kernel, library, settings, job_requests)
    door = Door(
        kernel=kernel,
        directory=directory,
        library=library,
        blobs=blobs,
        settings=settings,
        gatekeeper=Gatekeeper(directory),
        job_requests=job_requests,
        run_requests=run_requests,
        submissions=SubmissionService(kernel, job_requests, run_requests),
        inline_tasks=inline_tasks,
    )
    app = HotApp(
        title="ADE",
        version=__version__,
        openapi_url="/api/v1/openapi.json",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    submissions = JobSubmissions(door)
    packages = Packages(blobs)
    for router in (
        submission_routes(submissions),
        job_routes(door),
        log_routes(door),
        verb_routes(door),
        run_routes(door),
        target_routes(door, submissions),
        artifact_routes(door),
        document_routes(door),
        configuration_routes(door, packages),
        draft_routes(door, packages),
        build_routes(door),
        activation_routes(door),
        workspace_routes(door),
        people_routes(door),
        schema_routes(kinds),
        health_routes(door, Health(kernel, settings, blobs, health_probes or {})),
        entrance_routes(door),
    ):
        app.include_router(router)
    for kind in (AdeError, HTTPException, RequestValidationError):
        app.add_exception_handler(kind, _problem)
    app.add_middleware(Edge)
    app.hot = hot_routes(submissions)
    app.drain = door.submissions.drain
    openapi.install(app)
    app.state.door = door
    return app


async def _problem(request: Request, error: Exception) -> Response:
    response = reply_to(error, trace_id_in(request.scope)).as_response()
    if response.status_code == 405:  # the router names the methods of one route only
        response.headers["Allow"] = ", ".join(_methods(request.app, request.url.path))
    return response


def _methods(app: FastAPI, path: str) -> list[str]:
    """List what may be done with a path."""
    return sorted(
        method.upper()
        for template, operations in app.openapi()["paths"].items()
        if compile_path(template)[0].match(path)
        for method in operations
    )
