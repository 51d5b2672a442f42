"""`/api/v1/workspaces`: tenants."""

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from pydantic import TypeAdapter

from ade.app.times import rfc3339
from ade.http.auth import Grant, Principal, Role
from ade.http.body import read_small
from ade.http.door import Door
from ade.http.models import WorkspaceBody, WorkspacePage, WorkspaceRequest
from ade.http.openapi import answers, takes
from ade.store.rows import Workspace

_NEW = TypeAdapter(WorkspaceRequest)


def workspace_json(workspace: Workspace, role: Role) -> dict[str, Any]:
    """Show a workspace, and what the caller may do in it."""
    return {
        "workspace_id": workspace.id,
        "slug": workspace.slug,
        "name": workspace.name,
        "role": role.name.lower(),
        "created_at": rfc3339(workspace.created_at),
    }


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
    ) -> Any:
        """Make a workspace (operators only)."""
        asked = await read_small(request, _NEW)
        made = await directory.add_workspace(asked.slug, asked.name)
        return workspace_json(made, operator.role_in(made.id))

    @router.get("", responses=answers(200, WorkspacePage, "Workspaces"))
    async def list_workspaces(
        principal: Annotated[Principal, Depends(gatekeeper.anyone)],
    ) -> Any:
        """List the workspaces that the key has a role in."""
        found = [(ws, principal.role_in(ws.id)) for ws in await directory.list_workspaces()]
        items = [workspace_json(ws, role) for ws, role in found if role is not Role.NONE]
        return {"items": items, "next_cursor": None}

    @router.get("/{ws}", responses=answers(200, WorkspaceBody, "A workspace", 404))
    async def read_workspace(grant: Annotated[Grant, Depends(gatekeeper.viewer)]) -> Any:
        """Read a workspace."""
        return workspace_json(grant.workspace, grant.role)

    return router
