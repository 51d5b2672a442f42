"""`/api/v1/health`, `/healthz`, `/readyz`, `/metrics`: for monitoring. No key is needed."""

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST

from ade.domain.scaler_state import ScalerState
from ade.http.context import AppContext
from ade.http.health import Health, overall
from ade.http.openapi import answers
from ade.http.responses import json_response
from ade.http.schemas.server import ComponentBody, HealthBody
from ade.telemetry import metrics

PUBLIC = {"x-public": True}
TEXT = {"text/plain": {"schema": {"type": "string"}}}


def health_routes(context: AppContext, health: Health) -> APIRouter:
    """Make the routes for monitoring."""
    router = APIRouter(tags=["health"])

    @router.get(
        "/api/v1/health",
        responses={
            **answers(200, HealthBody, "The server works, perhaps degraded"),
            503: {"model": HealthBody, "description": "A component is down"},
        },
        openapi_extra=PUBLIC,
    )
    async def read_health() -> Response:
        """Report the health of each component and of the server."""
        found = await health.components()
        status = overall(found)
        components: list[ComponentBody] = [
            {"name": name, "status": component.status, "detail": component.detail}
            for name, component in found.items()
        ]
        body: HealthBody = {"status": status, "components": components}
        return json_response(body, 503 if status == "down" else 200)

    @router.get(
        "/healthz",
        responses=answers(200, None, "The process answers", content=TEXT),
        openapi_extra=PUBLIC,
    )
    async def is_alive() -> Response:
        """Report that the process answers."""
        return PlainTextResponse("ok\n")

    @router.get(
        "/readyz",
        responses={
            **answers(200, None, "Requests can be served", content=TEXT),
            503: {"description": "The database takes no writes", "content": TEXT},
        },
        openapi_extra=PUBLIC,
    )
    async def is_ready() -> Response:
        """Report whether the database takes writes; the outcome of one counts for a second."""
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
        """Print the metrics of this process, the depth of the queue and what scalers last saw."""
        depths, scalers = await context.kernel.read(
            lambda reading: (reading.count_by_status(), reading.list_scalers())
        )
        metrics.queue(depths)
        metrics.scalers({row.name: ScalerState.from_json(row.state) for row in scalers})
        return Response(metrics.exposition(), media_type=CONTENT_TYPE_LATEST)

    return router
