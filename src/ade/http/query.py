"""Query parameters: those that a route does not know are rejected, with the name that was meant."""

import difflib
from collections.abc import Callable
from typing import Any, get_origin
from weakref import WeakKeyDictionary

from fastapi import Request
from fastapi.dependencies.models import Dependant

from ade.domain.errors import InvalidRequest

NAME_CHARS_MAX = 60
# For each endpoint: its query parameters, and whether each takes several values.
_known: WeakKeyDictionary[Callable[..., Any], dict[str, bool]] = WeakKeyDictionary()


def check_parameters(request: Request) -> None:
    """Raise for a query parameter that the route does not declare, or takes only once."""
    query = request.query_params
    if not query:
        return
    endpoint = request.scope["endpoint"]
    known = _known.get(endpoint)
    if known is None:
        known = _known[endpoint] = _parameters(request.scope["route"].dependant)
    errors = [_unknown(name, known) for name in query if name not in known]
    for name, takes_several in known.items():
        if not takes_several and len(query.getlist(name)) > 1:
            errors.append({"field": name, "message": "it may be given only once"})
    if errors:
        first = errors[0]
        end = "" if first["message"].endswith("?") else "."
        raise InvalidRequest(f"{first['field']}: {first['message']}{end}", errors=errors)


def _parameters(dependant: Dependant) -> dict[str, bool]:
    found = {
        field.alias: get_origin(field.field_info.annotation) is list
        for field in dependant.query_params
    }
    for dependency in dependant.dependencies:
        found |= _parameters(dependency)
    return found


def _unknown(name: str, known: dict[str, bool]) -> dict[str, str]:
    shown = name[:NAME_CHARS_MAX].encode("utf-8", "replace").decode()
    near = difflib.get_close_matches(shown, known, n=1)
    if near:
        message = f"there is no such parameter; did you mean {near[0]}?"
    elif known:
        message = f"there is no such parameter; there are {', '.join(sorted(known))}"
    else:
        message = "this path takes no query parameters"
    return {"field": shown, "message": message}
