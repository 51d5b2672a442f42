"""Refuse requests that another site's page has a signed-in browser send.

A request that is authenticated by a cookie and changes something must come from one of this
server's own origins (scheme, host and port), and carry a token that only a page of this server can
know. Requests with an API key need neither: no browser adds a key by itself.

    what a request says                       the answer
    ----------------------------------------  ------------------------------------------
    Sec-Fetch-Site: cross-site or same-site   403 cross_site_request
    Origin of another scheme, host or port    403 cross_site_request
    no Origin, Referer of another origin      403 cross_site_request
    none of these headers                     the token decides: every browser sends one
    no CSRF token, or a wrong one             403 csrf_token_invalid

The token is an HMAC under the session's own token, so it changes with each session, nothing has to
be stored, and it does not reveal what it was made from.
"""

import base64
import hashlib
import hmac

from starlette.types import Scope

from ade.domain.errors import CrossSiteRequest, CsrfTokenInvalid
from ade.http.session_cookie import origin_of

HEADER = b"x-csrf-token"
FIELD = "csrf_token"
PURPOSE = b"ade csrf 1"
OWN_SITE = (b"same-origin", b"none")
INVALID = (
    "Requests that are authenticated by a cookie need the CSRF token of the session in the header"
    " X-CSRF-Token. GET /api/v1/session returns it."
)


def csrf_token(session_token: str) -> str:
    """Return the CSRF token of a session."""
    made = hmac.new(session_token.encode(), PURPOSE, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(made).rstrip(b"=").decode()


def check_csrf_token(given: str, session_token: str) -> None:
    """Raise CsrfTokenInvalid unless a token is that of the session."""
    if not hmac.compare_digest(given.encode("utf-8"), csrf_token(session_token).encode()):
        raise CsrfTokenInvalid(INVALID)


def check_origin(scope: Scope, own: set[str]) -> None:
    """Raise CrossSiteRequest if a request says that it comes from another origin."""
    headers = dict(scope["headers"])
    site = headers.get(b"sec-fetch-site")
    if site is not None and site not in OWN_SITE:
        raise CrossSiteRequest(
            "The request comes from a page of another site, so its cookie is not accepted."
        )
    origin = headers.get(b"origin", headers.get(b"referer"))
    if origin is None:
        return
    found = origin_of(origin.decode("latin-1"))
    if found not in own:
        raise CrossSiteRequest(
            f"The request comes from {found or 'a page without an origin'}, and this server is"
            f" {' or '.join(sorted(own)) or 'not named in the request'}. If a proxy is in between,"
            " set ADE_PUBLIC_URL to the address that browsers use."
        )


def csrf_header(scope: Scope) -> str:
    """Return the CSRF token in a request's header; empty if there is none."""
    return dict(scope["headers"]).get(HEADER, b"").decode("latin-1")
