"""`/api/v1/workspaces`: tenants."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request
from pydantic import TypeAdapter

from ade.http.auth import Authorization, Principal, Role
from ade.http.body import read_small
from ade.http.context import AppContext
from ade.http.openapi import answers, takes
from ade.http.schemas.directory import (
    WorkspaceBody,
    WorkspacePage,
    WorkspaceRequest,
    workspace_body,
)

_NEW = TypeAdapter(WorkspaceRequest)


def workspace_routes(context: AppContext) -> APIRouter:
    """Make the routes of workspaces."""
    router = APIRouter(prefix="/api/v1/workspaces", tags=["workspaces"])
    authenticator, directory = context.authenticator, context.directory

    @router.post(
        "",
        status_code=201,
        responses=answers(201, WorkspaceBody, "Made", 403, 409, 413, 415, 422),
        openapi_extra=takes(WorkspaceRequest),
    )
    async def make_workspace(
        request: Request, operator: Annotated[Principal, Depends(authenticator.operator)]
    ) -> WorkspaceBody:
        """Create a workspace (operators only)."""
        body = await read_small(request, _NEW)
        made = await directory.add_workspace(body.slug, body.name)
        return workspace_body(made, operator.role_in(made.id).label)

    @router.get("", responses=answers(200, WorkspacePage, "Workspaces"))
    async def list_workspaces(
        principal: Annotated[Principal, Depends(authenticator.anyone)],
    ) -> WorkspacePage:
        """List the workspaces that the key has a role in."""
        found = [(ws, principal.role_in(ws.id)) for ws in await directory.list_workspaces()]
        items = [workspace_body(ws, role.label) for ws, role in found if role is not Role.NONE]
        return {"items": items, "next_cursor": None}

    @router.get("/{ws}", responses=answers(200, WorkspaceBody, "A workspace", 404))
    async def read_workspace(
        auth: Annotated[Authorization, Depends(authenticator.viewer)],
    ) -> WorkspaceBody:
        """Read a workspace."""
        return workspace_body(auth.workspace, auth.role.label)

    return router
