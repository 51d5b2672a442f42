"""Pages of lists: an opaque cursor says where the next page begins."""

import base64
import binascii

from ade.domain.errors import InvalidRequest
from ade.domain.ids import is_uuid

PAGE_SIZE = 50
_VERSION = "1"


def cursor_after(last_id: str) -> str:
    """Make the cursor of the page after an item."""
    return base64.urlsafe_b64encode(f"{_VERSION}:{last_id}".encode()).decode().rstrip("=")


def read_cursor(cursor: str | None) -> str | None:
    """Return the id of the item before the page, or raise if the cursor is not valid."""
    if cursor is None:
        return None
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        version, _, last_id = base64.b64decode(padded, b"-_", validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        version, last_id = "", ""
    if version != _VERSION or not is_uuid(last_id):
        raise InvalidRequest(
            "The cursor is not valid.",
            errors=[{"field": "cursor", "message": "use next_cursor of the previous page"}],
        )
    return last_id
