"""Members and API keys of a workspace."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter

from ade.domain.errors import NotFound
from ade.http.auth import Authorization
from ade.http.body import read_small
from ade.http.context import AppContext
from ade.http.openapi import answers, takes
from ade.http.schemas.directory import (
    KeyBody,
    KeyMade,
    KeyPage,
    KeyRequest,
    MemberBody,
    MemberPage,
    MemberRequest,
    key_body,
    member_body,
    new_key_body,
)

_MEMBER = TypeAdapter(MemberRequest)
_KEY = TypeAdapter(KeyRequest)


def member_routes(context: AppContext) -> APIRouter:
    """Make the routes of members and keys."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}")
    authenticator, directory = context.authenticator, context.directory
    Admin = Annotated[Authorization, Depends(authenticator.admin)]

    @router.get(
        "/members", tags=["members"], responses=answers(200, MemberPage, "Members", 403, 404)
    )
    async def list_members(auth: Admin) -> MemberPage:
        """List the members of a workspace."""
        found = await directory.list_members(auth.workspace.id)
        return {"items": [member_body(member) for member in found], "next_cursor": None}

    @router.post(
        "/members",
        tags=["members"],
        status_code=201,
        responses=answers(201, MemberBody, "The member", 403, 404, 413, 415, 422),
        openapi_extra=takes(MemberRequest),
    )
    async def set_member(request: Request, auth: Admin) -> MemberBody:
        """Give a user a role; an unknown name becomes a new user."""
        body = await read_small(request, _MEMBER)
        member = await directory.set_member(auth.workspace.id, body.name, body.role)
        authenticator.forget()
        return member_body(member)

    @router.delete(
        "/members/{user_id}",
        tags=["members"],
        status_code=204,
        responses=answers(204, None, "Removed", 403, 404),
    )
    async def remove_member(auth: Admin, user_id: str) -> Response:
        """Remove a user from the workspace; its keys stop working here within two seconds."""
        await directory.remove_member(auth.workspace.id, user_id)
        authenticator.forget()
        return Response(status_code=204)

    @router.get("/keys", tags=["keys"], responses=answers(200, KeyPage, "Keys", 403, 404))
    async def list_keys(auth: Admin) -> KeyPage:
        """List the keys of a workspace, without their secrets."""
        found = await directory.list_keys(auth.workspace.id)
        return {"items": [key_body(key) for key in found], "next_cursor": None}

    @router.post(
        "/keys",
        tags=["keys"],
        status_code=201,
        responses=answers(201, KeyMade, "The key, shown once", 403, 404, 413, 415, 422),
        openapi_extra=takes(KeyRequest),
    )
    async def make_key(request: Request, auth: Admin) -> KeyMade:
        """Create a key for this workspace only; it never allows more than its user may."""
        body = await read_small(request, _KEY)
        user_id = auth.user_id
        if body.user_id is not None and body.user_id != user_id:
            known = await directory.list_members(auth.workspace.id)
            if body.user_id not in {member.user_id for member in known}:
                raise NotFound("There is no such member in this workspace.")
            user_id = body.user_id
        made = await directory.add_key(auth.workspace.id, user_id, body.role, body.label)
        return new_key_body(made)

    @router.delete(
        "/keys/{key_id}", tags=["keys"], responses=answers(200, KeyBody, "Revoked", 403, 404)
    )
    async def revoke_key(auth: Admin, key_id: str) -> KeyBody:
        """Revoke a key; it stops working within two seconds."""
        revoked = await directory.revoke_key(auth.workspace.id, key_id)
        authenticator.forget()
        return key_body(revoked)

    return router
