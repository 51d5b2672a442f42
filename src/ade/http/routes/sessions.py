"""`/api/v1/me`, `/api/v1/session` and `/api/v1/sessions`: who is signed in, and where."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from ade.domain.errors import NotFound
from ade.http.auth import Principal
from ade.http.context import AppContext
from ade.http.csrf import csrf_token
from ade.http.openapi import answers
from ade.http.schemas.sessions import (
    Me,
    OwnSession,
    SessionBody,
    SessionPage,
    me,
    own_session,
    session_body,
)
from ade.store.rows import UserSession

NO_SESSION = "There is no such session, or it is not yours."
NO_STORE = "no-store"


def session_routes(context: AppContext) -> APIRouter:
    """Make the routes of sessions."""
    router = APIRouter(prefix="/api/v1", tags=["sessions"])
    authenticator, directory, sessions = context.authenticator, context.directory, context.sessions
    Anyone = Annotated[Principal, Depends(authenticator.anyone)]

    @router.get("/me", responses=answers(200, Me, "Who sends the request"))
    async def read_me(principal: Anyone) -> Me:
        """Read who the key or session belongs to, and its role in each workspace."""
        return me(principal, await directory.list_workspaces())

    @router.get("/session", responses=answers(200, OwnSession, "The session", 404))
    async def read_session(request: Request, response: Response, principal: Anyone) -> OwnSession:
        """Read the session of this browser, with the CSRF token that its requests need."""
        if principal.session is None:
            raise NotFound("This request is authenticated by an API key and belongs to no session.")
        response.headers["Cache-Control"] = NO_STORE
        csrf = csrf_token(context.cookie.read(request.scope))
        return own_session(principal.session, principal, await directory.list_workspaces(), csrf)

    @router.get("/sessions", responses=answers(200, SessionPage, "Sessions"))
    async def list_sessions(principal: Anyone) -> SessionPage:
        """List the sessions that began with the same key; an operator sees those of everybody."""
        if principal.operator:
            found = await sessions.list_all()
        else:
            found = await sessions.list_of_key(principal.holder.key_id)
        items: list[SessionBody] = [session_body(one, principal) for one in found]
        return {"items": items, "next_cursor": None}

    @router.delete("/sessions", status_code=204, responses=answers(204, None, "Ended", 403))
    async def end_sessions(principal: Anyone) -> Response:
        """End all sessions of one's own, this one included: those of the user for an operator,
        those of the key for everybody else."""
        await context.end_own_sessions(principal)
        authenticator.forget()
        return Response(status_code=204)

    @router.delete(
        "/sessions/{session_id}", status_code=204, responses=answers(204, None, "Ended", 403, 404)
    )
    async def end_session(principal: Anyone, session_id: str) -> Response:
        """End a session; other server processes notice within two seconds."""
        found = await sessions.find_by_id(session_id)
        if found is None or not _may_end(principal, found):
            raise NotFound(NO_SESSION)
        await sessions.end(found.id)
        authenticator.forget()
        return Response(status_code=204)

    return router


def _may_end(principal: Principal, session: UserSession) -> bool:
    return principal.operator or session.key_id == principal.holder.key_id
