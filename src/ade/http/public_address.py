"""The address that clients know this server by, for links and for the cookies of sessions.

`ADE_PUBLIC_URL` decides, if it is set. Otherwise the connection does: its scheme, and the `Host`
that the request names. A proxy that ends TLS tells the original ones in `X-Forwarded-Proto` and
`X-Forwarded-Host`; anyone can send these headers, so they are read only from a trusted proxy
(`ADE_TRUSTED_PROXIES`), and of several values the last one, which the nearest proxy wrote. A host
that is not one is ignored.
"""

import re

from starlette.types import Scope

from ade.http.client_address import Networks

HOST = re.compile(
    rb"(?:[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?"
)
SCHEMES = (b"http", b"https")


class PublicAddress:
    """Tell the address of this server, as its clients see it."""

    def __init__(self, public_url: str | None = None, proxies: Networks | None = None) -> None:
        self._public_url = public_url.rstrip("/") if public_url else None
        self._proxies = proxies or Networks()

    def of(self, scope: Scope) -> str:
        """Return scheme, host and port for links in the answer to a request; no final slash."""
        if self._public_url is not None:
            return self._public_url
        scheme = str(scope.get("scheme", "http"))
        host = _last(scope, b"host")
        client = scope.get("client")
        if client and client[0] in self._proxies:
            forwarded = _last(scope, b"x-forwarded-proto").lower()
            scheme = forwarded.decode() if forwarded in SCHEMES else scheme
            forwarded = _last(scope, b"x-forwarded-host")
            host = forwarded if HOST.fullmatch(forwarded) else host
        name = host.decode() if HOST.fullmatch(host) else _listening(scope)
        return f"{scheme}://{name}"


def _last(scope: Scope, header: bytes) -> bytes:
    """Return the last value of a header that may list several."""
    values = [value for name, value in scope["headers"] if name == header]
    return bytes(values[-1].rpartition(b",")[2].strip()) if values else b""


def _listening(scope: Scope) -> str:
    """Return the address that the server listens on."""
    host, port = scope.get("server") or ("localhost", None)
    shown = f"[{host}]" if ":" in host else host
    return shown if port is None else f"{shown}:{port}"
