"""Pages of lists: an opaque cursor that says where the next one begins."""

import base64
import binascii

from ade.domain.errors import InvalidRequest
from ade.domain.ids import is_uuid

_VERSION = "1"


def cursor_after(last_id: str) -> str:
    """Make a cursor for what comes after an item."""
    return base64.urlsafe_b64encode(f"{_VERSION}:{last_id}".encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> str | None:
    """Return the item that a cursor points behind, or raise if it is not one of ours."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        version, _, last_id = base64.b64decode(padded, b"-_", validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        version, last_id = "", ""
    if version != _VERSION or not is_uuid(last_id):
        raise InvalidRequest(
            "The cursor is not one that a list of ours gave.",
            errors=[{"field": "cursor", "message": "give next_cursor of the page before"}],
        )
    return last_id
