"""`/api/v1/keys`: the operators' keys, which belong to no workspace; the first key is one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request
from pydantic import TypeAdapter

from ade.http.auth import Principal
from ade.http.body import read_small
from ade.http.context import AppContext
from ade.http.openapi import answers, takes
from ade.http.schemas.directory import (
    KeyBody,
    KeyMade,
    KeyPage,
    OperatorKeyRequest,
    key_body,
    new_key_body,
)

_KEY = TypeAdapter(OperatorKeyRequest)


def operator_key_routes(context: AppContext) -> APIRouter:
    """Make the routes of operators' keys."""
    router = APIRouter(prefix="/api/v1/keys", tags=["keys"])
    authenticator, directory = context.authenticator, context.directory
    Operator = Annotated[Principal, Depends(authenticator.operator)]

    @router.get("", responses=answers(200, KeyPage, "Keys", 403))
    async def list_operator_keys(operator: Operator) -> KeyPage:
        """List the keys that belong to no workspace, without their secrets (operators only)."""
        found = await directory.list_operator_keys()
        return {"items": [key_body(key) for key in found], "next_cursor": None}

    @router.post(
        "",
        status_code=201,
        responses=answers(201, KeyMade, "The key, shown once", 403, 413, 415, 422),
        openapi_extra=takes(OperatorKeyRequest),
    )
    async def make_operator_key(request: Request, operator: Operator) -> KeyMade:
        """Create a further operator's key of the caller, for everything (operators only)."""
        body = await read_small(request, _KEY)
        return new_key_body(await directory.add_operator_key(operator.user_id, body.label))

    @router.delete("/{key_id}", responses=answers(200, KeyBody, "Revoked", 403, 404, 409, 422))
    async def revoke_operator_key(
        operator: Operator,
        key_id: str,
        force: Annotated[bool, Query(description="Revoke it even if it is the last one.")] = False,
    ) -> KeyBody:
        """Revoke an operator's key and end its sessions; 409 if it is the last one."""
        revoked = await directory.revoke_operator_key(key_id, force=force)
        authenticator.forget()
        return key_body(revoked)

    return router
