"""What both drivers need of httpx: headers, timeouts, and what its errors mean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ade.client.core.steps import Request, TransportFailed
from ade.client.profiles import Connection
from ade.version import __version__

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS = 10.0
ERROR_BYTES_MAX = 1024 * 1024
# More than the server lets one key have at once would only wait.
CONNECTIONS_MAX = 100


def client_options(connection: Connection, timeout_seconds: float) -> dict[str, Any]:
    """Return how both kinds of httpx client are made."""
    import httpx

    return {
        "base_url": connection.url,
        "headers": {
            "Authorization": f"Bearer {connection.api_key}",
            "Accept": "application/json",
            "User-Agent": f"ade-client/{__version__}",
        },
        "timeout": httpx.Timeout(timeout_seconds, connect=CONNECT_SECONDS),
        "limits": httpx.Limits(max_connections=CONNECTIONS_MAX),
        **_trust(connection.url),
    }


def _trust(url: str) -> dict[str, Any]:
    """Leave out reading the authorities, which takes 70 ms, where there is no TLS."""
    if url.startswith("https://"):
        return {}
    import ssl

    return {"verify": ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)}  # trusts nobody


def request_options(request: Request, timeout_seconds: float) -> dict[str, Any]:
    """Return the parts of a request that both kinds of client take alike, all but its body."""
    import httpx

    headers = dict(request.headers)
    if request.body is not None and not isinstance(request.body, bytes):
        headers["Content-Length"] = str(request.body.size_bytes)
    seconds = request.timeout_seconds or timeout_seconds
    return {
        "method": request.method,
        "url": request.path,
        "params": list(request.query) or None,
        "headers": headers,
        "timeout": httpx.Timeout(seconds, connect=CONNECT_SECONDS),
    }


def failed(error: httpx.TransportError | httpx.InvalidURL, url: str) -> TransportFailed:
    """Say how a request was lost, and whether the server may have received it."""
    import httpx

    never_sent = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError)
    unsent = isinstance(error, (*never_sent, httpx.UnsupportedProtocol, httpx.InvalidURL))
    reason = str(error) or type(error).__name__
    return TransportFailed(f"{url}: {reason}", sent=not unsent)
