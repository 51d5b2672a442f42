"""`/`: log in by the link with a token that the first start prints."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from ade import __version__
from ade.domain.errors import Unauthenticated
from ade.http.auth import COOKIE
from ade.http.context import AppContext

COOKIE_SECONDS = 30 * 24 * 3600


def login_routes(context: AppContext) -> APIRouter:
    """Make the route that logs in."""
    router = APIRouter(include_in_schema=False)

    @router.get("/")
    async def enter(
        request: Request, token: Annotated[str | None, Query(max_length=256)] = None
    ) -> Response:
        """Trade the token in the link for a cookie, and take it out of the address bar."""
        if token is None:
            return JSONResponse(
                {"name": "ade", "version": __version__, "api": "/api/v1/openapi.json"}
            )
        if not token.isascii() or not token.isprintable():
            raise Unauthenticated("This API key is not valid.")
        await context.authenticator.principal_of(token)
        response = RedirectResponse("/", 303, headers={"Referrer-Policy": "no-referrer"})
        secure = request.url.scheme == "https"
        response.set_cookie(
            COOKIE, token, COOKIE_SECONDS, httponly=True, samesite="lax", secure=secure
        )
        return response

    return router
