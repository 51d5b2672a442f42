"""Read an id that someone gave."""

from ade.domain.errors import NotFound
from ade.domain.ids import is_uuid


def key(given: str, what: str) -> str:
    """Return an id as it is stored, or raise that there is no such thing."""
    if not is_uuid(given):
        raise NotFound(f"There is no such {what} in this workspace.")
    return given.lower()
