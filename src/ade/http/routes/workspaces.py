"""`/api/v1/workspaces`: tenants."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import TypeAdapter

from ade.http.auth import Grant, Principal, Role
from ade.http.body import read_small
from ade.http.door import Door
from ade.http.openapi import answers, takes
from ade.http.schemas.directory import (
    WorkspaceBody,
    WorkspacePage,
    WorkspaceRequest,
    workspace_body,
)

_NEW = TypeAdapter(WorkspaceRequest)


def workspace_routes(door: Door) -> APIRouter:
    """Make the routes of workspaces."""
    router = APIRouter(prefix="/api/v1/workspaces", tags=["workspaces"])
    gatekeeper, directory = door.gatekeeper, door.directory

    @router.post(
        "",
        status_code=201,
        responses=answers(201, WorkspaceBody, "Made", 403, 409, 413, 415, 422),
        openapi_extra=takes(WorkspaceRequest),
    )
    async def make_workspace(
        request: Request, operator: Annotated[Principal, Depends(gatekeeper.operator)]
    ) -> WorkspaceBody:
        """Make a workspace (operators only)."""
        asked = await read_small(request, _NEW)
        made = await directory.add_workspace(asked.slug, asked.name)
        return workspace_body(made, operator.role_in(made.id).label)

    @router.get("", responses=answers(200, WorkspacePage, "Workspaces"))
    async def list_workspaces(
        principal: Annotated[Principal, Depends(gatekeeper.anyone)],
    ) -> WorkspacePage:
        """List the workspaces that the key has a role in."""
        found = [(ws, principal.role_in(ws.id)) for ws in await directory.list_workspaces()]
        items = [workspace_body(ws, role.label) for ws, role in found if role is not Role.NONE]
        return {"items": items, "next_cursor": None}

    @router.get("/{ws}", responses=answers(200, WorkspaceBody, "A workspace", 404))
    async def read_workspace(grant: Annotated[Grant, Depends(gatekeeper.viewer)]) -> WorkspaceBody:
        """Read a workspace."""
        return workspace_body(grant.workspace, grant.role.label)

    return router
