"""`/api/v1/health`, `/healthz`, `/readyz`, `/metrics`: for those who watch. No key is needed."""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from ade.http.door import Door
from ade.http.health import Health, overall
from ade.http.openapi import answers
from ade.http.schemas.server import HealthBody
from ade.telemetry import metrics

PUBLIC = {"x-public": True}
TEXT = {"text/plain": {"schema": {"type": "string"}}}


def health_routes(door: Door, health: Health) -> APIRouter:
    """Make the routes of those who watch."""
    router = APIRouter(tags=["health"])

    @router.get(
        "/api/v1/health",
        responses={
            **answers(200, HealthBody, "All is well, or some of it is not"),
            503: {"model": HealthBody, "description": "A part is down"},
        },
        openapi_extra=PUBLIC,
    )
    async def read_health() -> Any:
        """Say how each part is, and all of them together."""
        found = await health.components()
        status = overall(found)
        components = [
            {"name": name, "status": one.status, "detail": one.detail}
            for name, one in found.items()
        ]
        code = 503 if status == "down" else 200
        return JSONResponse({"status": status, "components": components}, code)

    @router.get(
        "/healthz",
        responses=answers(200, None, "The process answers", content=TEXT),
        openapi_extra=PUBLIC,
    )
    async def is_alive() -> Response:
        """Say that the process answers."""
        return PlainTextResponse("ok\n")

    @router.get(
        "/readyz",
        responses={
            **answers(200, None, "Requests can be served", content=TEXT),
            503: {"description": "The database does not answer", "content": TEXT},
        },
        openapi_extra=PUBLIC,
    )
    async def is_ready() -> Response:
        """Say whether the database answers."""
        found = await health.database()
        if found.status != "ok":
            return PlainTextResponse(f"database {found.status}: {found.detail}\n", 503)
        return PlainTextResponse("ready\n")

    @router.get(
        "/metrics",
        responses=answers(200, None, "Metrics", content=TEXT),
        openapi_extra=PUBLIC,
    )
    async def read_metrics() -> Response:
        """Print the metrics of this process, and the depth of the queue."""
        metrics.queue(await door.kernel.read(lambda reading: reading.count_by_status()))
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    return router
