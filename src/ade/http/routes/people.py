"""Members and API keys of a workspace."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response
from pydantic import TypeAdapter

from ade.domain.errors import NotFound
from ade.http.auth import Grant
from ade.http.body import read_small
from ade.http.door import Door
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


def people_routes(door: Door) -> APIRouter:
    """Make the routes of members and keys."""
    router = APIRouter(prefix="/api/v1/workspaces/{ws}")
    gatekeeper, directory = door.gatekeeper, door.directory
    Admin = Annotated[Grant, Depends(gatekeeper.admin)]

    @router.get(
        "/members", tags=["members"], responses=answers(200, MemberPage, "Members", 403, 404)
    )
    async def list_members(grant: Admin) -> MemberPage:
        """List the members of a workspace."""
        found = await directory.list_members(grant.workspace.id)
        return {"items": [member_body(member) for member in found], "next_cursor": None}

    @router.post(
        "/members",
        tags=["members"],
        status_code=201,
        responses=answers(201, MemberBody, "The member", 403, 404, 413, 415, 422),
        openapi_extra=takes(MemberRequest),
    )
    async def set_member(request: Request, grant: Admin) -> MemberBody:
        """Give a user a role; a name that nobody has becomes a user."""
        asked = await read_small(request, _MEMBER)
        member = await directory.set_member(grant.workspace.id, asked.name, asked.role)
        gatekeeper.forget()
        return member_body(member)

    @router.delete(
        "/members/{user_id}",
        tags=["members"],
        status_code=204,
        responses=answers(204, None, "Removed", 403, 404),
    )
    async def remove_member(grant: Admin, user_id: str) -> Response:
        """Take a user's role; its keys stop working here within two seconds."""
        await directory.remove_member(grant.workspace.id, user_id)
        gatekeeper.forget()
        return Response(status_code=204)

    @router.get("/keys", tags=["keys"], responses=answers(200, KeyPage, "Keys", 403, 404))
    async def list_keys(grant: Admin) -> KeyPage:
        """List the keys of a workspace; nobody can read a key again."""
        found = await directory.list_keys(grant.workspace.id)
        return {"items": [key_body(key) for key in found], "next_cursor": None}

    @router.post(
        "/keys",
        tags=["keys"],
        status_code=201,
        responses=answers(201, KeyMade, "The key, shown once", 403, 404, 413, 415, 422),
        openapi_extra=takes(KeyRequest),
    )
    async def make_key(request: Request, grant: Admin) -> KeyMade:
        """Make a key that works in this workspace only; it never allows more than its user may."""
        asked = await read_small(request, _KEY)
        user_id = grant.user_id
        if asked.user_id is not None and asked.user_id != user_id:
            known = await directory.list_members(grant.workspace.id)
            if asked.user_id not in {member.user_id for member in known}:
                raise NotFound("There is no such member in this workspace.")
            user_id = asked.user_id
        made = await directory.add_key(grant.workspace.id, user_id, asked.role, asked.label)
        return new_key_body(made)

    @router.delete(
        "/keys/{key_id}", tags=["keys"], responses=answers(200, KeyBody, "Revoked", 403, 404)
    )
    async def revoke_key(grant: Admin, key_id: str) -> KeyBody:
        """Revoke a key; it stops working within two seconds."""
        revoked = await directory.revoke_key(grant.workspace.id, key_id)
        gatekeeper.forget()
        return key_body(revoked)

    return router
