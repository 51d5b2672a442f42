"""The cookie of a session, and the origin that browsers know this server by.

Over TLS the cookie has the prefix `__Host-`: browsers then accept it only with `Secure`, for this
host alone, so that no other host of the domain can plant one. Over plain HTTP, as on a loopback
address, browsers refuse that prefix, and the cookie has another name; that name is not read over
TLS. Whether there is TLS, `ade.http.public_address` says: the same rule as for links.

`SameSite=Lax`: a link from another site opens a page of the console signed in, and no request of
another site that could change something carries the cookie. The Origin and the CSRF token are
checked all the same (`ade.http.csrf`).
"""

from urllib.parse import urlsplit

from starlette.requests import cookie_parser
from starlette.responses import Response
from starlette.types import Scope

from ade.http.public_address import PublicAddress

PLAIN_NAME = "ade_session"
SECURE_NAME = "__Host-ade_session"
DEFAULT_PORTS = {"http": 80, "https": 443}


class SessionCookie:
    """Read and write the cookie of a session, and know the server's own origins."""

    def __init__(
        self, address: PublicAddress | None = None, max_age_seconds: int = 7 * 86_400
    ) -> None:
        self._address = address or PublicAddress()
        self._max_age_seconds = max_age_seconds

    def is_secure(self, scope: Scope) -> bool:
        """Tell whether the browser of a request uses TLS."""
        return self._address.of(scope).startswith("https:")

    def origins(self, scope: Scope) -> set[str]:
        """Return the origins that the server's own pages may have in this request.

        A proxy may pass the public host name on, over a connection without TLS: that the name can
        be reached over TLS does not make a page that came without it one of the server's own.
        """
        host = next((value for name, value in scope["headers"] if name == b"host"), b"")
        direct = origin_of(f"{scope.get('scheme', 'http')}://{host.decode('latin-1')}")
        public = origin_of(self._address.of(scope))
        own = {public, direct} if _host_of(direct) != _host_of(public) else {public}
        return own - {""}

    def read(self, scope: Scope) -> str:
        """Return the token in a request's cookie; empty if there is none."""
        name = self._name(scope)
        values = [value for header, value in scope["headers"] if header == b"cookie"]
        if not any(PLAIN_NAME.encode() in value for value in values):
            return ""
        return cookie_parser(b"; ".join(values).decode("latin-1")).get(name, "")

    def write(self, response: Response, scope: Scope, token: str) -> None:
        """Have the browser keep a session's token."""
        response.set_cookie(
            self._name(scope),
            token,
            self._max_age_seconds,
            secure=self.is_secure(scope),
            httponly=True,
            samesite="lax",
        )

    def clear(self, response: Response, scope: Scope) -> None:
        """Have the browser forget the session's token."""
        response.delete_cookie(
            self._name(scope), secure=self.is_secure(scope), httponly=True, samesite="lax"
        )

    def _name(self, scope: Scope) -> str:
        return SECURE_NAME if self.is_secure(scope) else PLAIN_NAME


def origin_of(url: str) -> str:
    """Return scheme, host and port of a URL as browsers write them; empty if it has none."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    shown = "" if port in (None, DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown}"


def _host_of(origin: str) -> str | None:
    return urlsplit(origin).hostname
