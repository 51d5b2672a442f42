"""Turn what is wrong with a request into one error that names the fields.

An error never repeats the values that were sent: they may be secrets.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from ade.domain.errors import InvalidRequest

ERRORS_MAX = 20
ERRORS_COUNTED_MAX = 1000
FIELD_CHARS_MAX = 200
# How JSON writes the character NUL; a body without it needs no further look.
ESCAPED_NUL = b"\\u0000"


def invalid_fields(
    errors: Sequence[Mapping[str, Any]], *, within: Iterable[str] = ()
) -> InvalidRequest:
    """Turn the errors that pydantic lists into one that names the fields."""
    fields = [_field_error(error, within) for error in errors[:ERRORS_MAX]]
    if not fields:
        return InvalidRequest("The request is not valid.")
    first = fields[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return InvalidRequest(f"{first['field']}: {first['message']}{more}.", errors=fields)


def invalid_body(error: ValidationError, *, within: Iterable[str] = ()) -> InvalidRequest:
    """Turn a failed validation into one error that names the fields, unless they are too many."""
    if error.error_count() > ERRORS_COUNTED_MAX:
        where = ".".join(within) or "body"
        return InvalidRequest(
            f"{where}: it has more than {ERRORS_COUNTED_MAX} errors.",
            errors=[{"field": where, "message": "too many errors to list"}],
        )
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    return invalid_fields(errors, within=within)


def _field_error(error: Mapping[str, Any], within: Iterable[str]) -> dict[str, str]:
    path = [*within, *(str(part) for part in error["loc"] if part not in ("body", "query", "path"))]
    if error["type"] == "json_invalid":
        path = []
    field = ".".join(path)[:FIELD_CHARS_MAX] or "body"
    message = str(error["msg"])[:FIELD_CHARS_MAX].rstrip(".")
    return {"field": _printable(field), "message": _printable(message)}


def _printable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def reject_nul(value: Any) -> None:
    """Raise if any text in the value holds the character NUL, which databases cannot store."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, str):
            if "\0" in item:
                raise InvalidRequest("A text holds the character NUL (\\u0000).")
        elif isinstance(item, Mapping):
            rest += item.keys()
            rest += item.values()
        elif isinstance(item, list):
            rest += item


def reject_nonfinite(value: Any) -> None:
    """Raise if any number in the value is infinite or NaN, which JSON cannot represent."""
    rest = [value]
    while rest:
        item = rest.pop()
        if isinstance(item, float) and not math.isfinite(item):
            raise InvalidRequest("A number is infinite or not a number (NaN).")
        if isinstance(item, Mapping):
            rest += item.values()
        elif isinstance(item, list):
            rest += item
