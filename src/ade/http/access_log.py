"""The access log: one structured line per request, after its answer.

It has no query strings, headers or bodies, so no keys and no signatures of links. The path has what
the client put there, such as the names of files. Requests that are refused before their head is
whole are counted in `ade_connections_refused_total` and have no line.
"""

import structlog
from starlette.types import Scope

from ade.http.client_address import Networks, client_address

PATH_CHARS_MAX = 300
log = structlog.get_logger("ade.access")


class AccessLog:
    """Write the line of each request."""

    def __init__(self, proxies: Networks) -> None:
        self._proxies = proxies

    def write(self, scope: Scope, route: str, status: int, seconds: float, body_bytes: int) -> None:
        """Write what is known of a request that was answered."""
        state = scope.get("state", {})
        log.info(
            "request",
            method=scope["method"],
            route=route,
            path=scope["path"][:PATH_CHARS_MAX],
            status=status,
            duration_ms=round(seconds * 1000, 3),
            body_bytes=body_bytes,
            key_id=state.get("key_id"),
            workspace_id=state.get("workspace_id"),
            address=client_address(scope, self._proxies),
            trace_id=state.get("trace_id"),
        )
