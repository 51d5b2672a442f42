"""The execution contract as JSON Schemas: what each job type takes, and what every result says."""

from typing import Any

from pydantic import TypeAdapter

from ade.app.request_schemas import JobRequest
from ade.http.openapi import say_open
from ade.http.schemas.results import Result
from ade.kinds import Kind, Kinds

DIALECT = "https://json-schema.org/draft/2020-12/schema"
PREFIX = "/api/v1/schemas/"
RESULT = "result.json"
VERSION = {"type": "string", "pattern": r"^1(\.[0-9]{1,9}){0,2}$"}


def contract_schemas(kinds: Kinds) -> dict[str, dict[str, Any]]:
    """Return every schema by its name; a name is also its path below `/api/v1/schemas/`."""
    found = {f"payload/{name}.json": _payload(kinds.named(name)) for name in kinds.names()}
    found[RESULT] = TypeAdapter(Result).json_schema()
    for schema in (found[RESULT], *found[RESULT]["$defs"].values()):
        say_open(schema)
    found[RESULT]["properties"]["schema_version"] = VERSION
    return {
        name: {"$schema": DIALECT, "$id": PREFIX + name, **schema}
        for name, schema in sorted(found.items())
    }


def _payload(kind: Kind) -> dict[str, Any]:
    """Describe the envelope of one job type: the common fields, and its own in two of them."""
    envelope = TypeAdapter(JobRequest).json_schema()
    definitions = envelope.setdefault("$defs", {})
    properties = envelope["properties"]
    for name, model in (("inputs", kind.inputs), ("output_spec", kind.output_spec)):
        part = TypeAdapter(model).json_schema(mode="validation")
        definitions |= part.pop("$defs", {})
        definitions[model.__name__] = part
        reference = {"$ref": f"#/$defs/{model.__name__}"}
        required = name in envelope["required"]
        properties[name] = reference if required else {"anyOf": [reference, {"type": "null"}]}
    properties["job_type"] = {"const": kind.name}
    properties["schema_version"] = {"anyOf": [VERSION, {"type": "null"}]}
    envelope["title"] = f"A job of type {kind.name}"
    envelope["description"] = (kind.__doc__ or "").strip().partition("\n")[0]
    return envelope
