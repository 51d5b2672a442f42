"""`/`, `/login` and `/logout`: trade a one-time link or an API key for a session, and end it.

`GET /?token=` uses nothing up: it shows a page with one button, because programs that preview links
fetch them too. The button's POST begins the session and redirects to an address without the token.
"""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from ade import __version__
from ade.domain.errors import SessionEnded, TooManyWrongKeys, Unauthenticated
from ade.http import sign_in_pages as pages
from ade.http.auth import Principal
from ade.http.body import read_form
from ade.http.context import AppContext
from ade.http.csrf import FIELD, check_csrf_token, check_origin, csrf_header, csrf_token
from ade.store.rows import LinkState, NewUserSession

HOME = "/"
NEXT_CHARACTERS_MAX = 2000
NEXT_STEP = "Run ade link on the machine of the server for a new one, or sign in with a key."
LINK_PROBLEMS = {
    LinkState.USED: f"This link has been used, and works once only. {NEXT_STEP}",
    LinkState.EXPIRED: f"This link has expired. {NEXT_STEP}",
    LinkState.UNKNOWN: f"This link is not valid. {NEXT_STEP}",
}
WRONG_KEY = "This API key is not valid. Check that you copied all of it."
TOO_MANY = "Your address has sent too many keys that are not valid. Wait a minute, then try again."
NO_STORE = {"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"}


def login_routes(context: AppContext) -> APIRouter:
    """Make the routes that sign in and out."""
    router = APIRouter(include_in_schema=False)
    authenticator, sessions, cookie = context.authenticator, context.sessions, context.cookie

    @router.get("/")
    async def enter(token: Annotated[str | None, Query(max_length=256)] = None) -> Response:
        """Show the page that trades the link's token for a session; without one, what this is."""
        if token is None:
            return JSONResponse(
                {"name": "ade", "version": __version__, "api": "/api/v1/openapi.json"}
            )
        state = await sessions.link_state(token)
        if state is LinkState.USABLE:
            return pages.confirm_page(token)
        return pages.sign_in_page(HOME, LINK_PROBLEMS[state], 401)

    @router.get("/login")
    async def show_login(
        request: Request, after: Annotated[str | None, Query(alias="next")] = None
    ) -> Response:
        """Show the sign-in form, or who is signed in."""
        token = cookie.read(request.scope)
        known = await _principal(token) if token else None
        if known is None:
            return pages.sign_in_page(local_path(after))
        return pages.signed_in_page(known.holder.user_name, csrf_token(token), local_path(after))

    @router.post("/login")
    async def sign_in(request: Request) -> Response:
        """Begin a session with a key or a one-time link, and redirect to a local path."""
        check_origin(request.scope, cookie.origins(request.scope))
        form = await read_form(request)
        after = local_path(form.get("next"))
        client = "".join(filter(str.isprintable, request.headers.get("user-agent", "")))
        replaced = cookie.read(request.scope) or None
        began: NewUserSession | LinkState
        if "token" in form:
            began = await sessions.begin_by_link(form["token"], client, replaced)
            if isinstance(began, LinkState):
                return pages.sign_in_page(after, LINK_PROBLEMS[began], 401)
        else:
            try:
                key = form.get("api_key", "").strip()
                await authenticator.principal_of_request(request.scope, key)
                began = await sessions.begin(key, client, replaced)
            except Unauthenticated:
                return pages.sign_in_page(after, WRONG_KEY, 401)
            except TooManyWrongKeys:
                return pages.sign_in_page(after, TOO_MANY, 429)
        if replaced is not None:
            authenticator.forget()
        response = RedirectResponse(after, 303, headers=NO_STORE)
        cookie.write(response, request.scope, began.token)
        return response

    @router.post("/logout")
    async def sign_out(request: Request) -> Response:
        """End the browser's session, or with `everywhere` all that it may end."""
        check_origin(request.scope, cookie.origins(request.scope))
        form = await read_form(request)
        token = cookie.read(request.scope)
        known = await _principal(token) if token else None
        if known is not None and known.session is not None:
            check_csrf_token(form.get(FIELD) or csrf_header(request.scope), token)
            if form.get("everywhere"):
                await context.end_own_sessions(known)
            else:
                await sessions.end(known.session.id)
            authenticator.forget()
        response = RedirectResponse("/login", 303, headers=NO_STORE)
        cookie.clear(response, request.scope)
        return response

    async def _principal(token: str) -> Principal | None:
        try:
            return await authenticator.principal_of_session(token)
        except SessionEnded:
            return None

    return router


def local_path(path: str | None) -> str:
    """Return a path of this server; anything that could lead elsewhere becomes the first page."""
    if path is None or len(path) > NEXT_CHARACTERS_MAX or not path.startswith("/"):
        return HOME
    if path.startswith("//") or "\\" in path or not (path.isascii() and path.isprintable()):
        return HOME
    return path
