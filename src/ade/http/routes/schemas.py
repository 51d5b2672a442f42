"""`/schemas`: the execution contract as JSON Schemas, for clients that validate."""

import json

from fastapi import APIRouter, Response

from ade.domain.errors import NotFound
from ade.http.contract_schemas import PREFIX, contract_schemas
from ade.http.openapi import answers
from ade.http.schemas.server import SchemaName, SchemaPage
from ade.kinds import Kinds

MEDIA_TYPE = "application/schema+json"
PUBLIC = {"x-public": True}


def schema_routes(kinds: Kinds) -> APIRouter:
    """Make the routes of schemas; they hold no one's data, so they need no key."""
    router = APIRouter(prefix=PREFIX.rstrip("/"), tags=["schemas"])
    texts = {name: json.dumps(schema) for name, schema in contract_schemas(kinds).items()}

    @router.get("", responses=answers(200, SchemaPage, "The schemas"), openapi_extra=PUBLIC)
    async def list_schemas() -> SchemaPage:
        """List the JSON Schemas of the execution contract."""
        items: list[SchemaName] = [{"name": name, "url": PREFIX + name} for name in texts]
        return {"items": items, "next_cursor": None}

    @router.get(
        "/{name:path}",
        responses=answers(200, None, "A schema", 404, content={MEDIA_TYPE: {"schema": {}}}),
        openapi_extra=PUBLIC,
    )
    async def read_schema(name: str) -> Response:
        """Read one JSON Schema."""
        if name not in texts:
            raise NotFound(f"There is no such schema; {PREFIX.rstrip('/')} lists them.")
        headers = {"Cache-Control": "public, max-age=3600"}
        return Response(texts[name], media_type=MEDIA_TYPE, headers=headers)

    router.head("/{name:path}", include_in_schema=False)(read_schema)
    return router
